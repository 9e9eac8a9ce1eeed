r"""The syntax of Java's .properties files, as java.util.Properties reads them.

Comments begin with # or !; a backslash at the end of a line continues it; key and value are parted by =, : or
blanks; \t, \n, \r, \f and \uXXXX are escapes, and a backslash before anything else is dropped. Bytes are
Latin-1.
"""

import re
from collections.abc import Iterator

from kelpie.client.client_errors import BadSettings

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINES = re.compile(r"\r\n|\r|\n")


def parse(raw: bytes, where: str = "the properties") -> dict[str, str]:
    """Keys and values; of a key that occurs twice, the last counts. Raises BadSettings."""
    values = {}
    for number, line in _logical_lines(raw.decode("latin-1")):
        key_end = _end_of_key(line)
        rest = line[key_end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        values[_unescaped(line[:key_end], where, number)] = _unescaped(rest, where, number)
    return values


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines as they are meant, with the number of the first natural line of each."""
    gathered, begun = "", 0
    for number, natural in enumerate(_LINES.split(text), start=1):
        line = natural.lstrip(_BLANKS)
        if not begun:
            if not line or line[0] in "#!":
                continue
            begun = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            gathered += line[:-1]
            continue
        yield begun, gathered + line
        gathered, begun = "", 0
    if begun:
        yield begun, gathered


def _end_of_key(line: str) -> int:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescaped(text: str, where: str, number: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign != "\\":
            out.append(sign)
            continue
        escaped = text[at : at + 1]
        at += 1
        if escaped == "u":
            digits = text[at : at + 4]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise BadSettings(
                    f"Line {number} of {where}: \\u is not followed by four hexadecimal digits."
                )
            out.append(chr(int(digits, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java's chars are UTF-16 units: what lies above U+FFFF is written as two escapes.
    return "".join(out).encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
