r"""The syntax of Java's .properties files, as java.util.Properties reads them.

Comments begin with # or !; a backslash at the end of a line continues it; key and value are parted by =, : or
blanks; \t, \n, \r, \f and \uXXXX are escapes, and a backslash before anything else is dropped. Bytes are
Latin-1.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from kelpie.client.client_errors import BadSettings
from kelpie.client.security import Secret

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINES = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.?|[^\\=: \t\f])*")
_ESCAPED = re.compile(r"\\(u.{0,4}|.?)", re.DOTALL)
_REFERENCE = re.compile(r"\$\{[^}:]+:[^}]*\}")


class Properties:
    """Properties, and which of them have been taken."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._taken: set[str] = set()
        self._unused: tuple[str, ...] = ()

    def take(self, key: str) -> str | None:
        self._taken.add(key)
        value = self._properties.get(key)
        if value is not None and "config.providers" in self._properties and _REFERENCE.search(value):
            raise BadSettings(
                f"{key} refers to a config provider, which Kelpie does not ask. Write the value itself "
                "into the file."
            )
        return value

    def secret(self, key: str) -> Secret | None:
        value = self.take(key)
        return None if value is None else Secret(value)

    def note_unused(self, unused: Iterable[str]) -> None:
        """Parts of values that were taken and have no effect."""
        self._unused += tuple(unused)

    @property
    def rest(self) -> tuple[str, ...]:
        """What was not taken, and what of the rest has no effect."""
        return (*sorted(set(self._properties) - self._taken), *self._unused)


def parse(raw: bytes, where: str = "the properties") -> dict[str, str]:
    """Keys and values; of a key that occurs twice, the last counts. Raises BadSettings."""
    values = {}
    for number, line in _logical_lines(raw.decode("latin-1")):
        match = _KEY.match(line)
        assert match is not None
        rest = line[match.end() :].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        values[_unescaped(match[0], where, number)] = _unescaped(rest, where, number)
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


def _unescaped(text: str, where: str, number: int) -> str:
    def sign(match: re.Match[str]) -> str:
        escaped = match[1]
        if not escaped.startswith("u"):
            return _ESCAPES.get(escaped, escaped)
        if not re.fullmatch("u[0-9a-fA-F]{4}", escaped):
            raise BadSettings(f"Line {number} of {where}: \\u is not followed by four hexadecimal digits.")
        return chr(int(escaped[1:], 16))

    # Java's chars are UTF-16 units: what lies above U+FFFF is written as two escapes.
    return _ESCAPED.sub(sign, text).encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
