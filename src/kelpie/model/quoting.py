"""Names and log lines come from others: a terminal or a shell must take them as text and nothing else."""

import re
import shlex
import unicodedata

_COMMAND = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control and format characters, surrogates, separators: they move the cursor, colour or reverse the text."""

_WORD = re.compile(r"""(?:\$'(?:\\.|[^'\\])*'|'[^']*'|"[^"]*"|[^\s'"])+""")
_PLAIN = re.compile(r"[\x20-\x7e]*")


def harmless(text: str) -> str:
    r"""The text with everything written out that a terminal would obey: "\x1b[2J"."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_written_out(sign) if unicodedata.category(sign) in _COMMAND else sign for sign in text)


def _written_out(sign: str) -> str:
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted(name: str) -> str:
    """A name as a shell takes it, whatever is in it; as $'…', which bash reads, where it would not show."""
    if name.isprintable():
        return shlex.quote(name)
    return f"$'{''.join(map(_escaped, name))}'"


def words_of(command: str) -> list[str]:
    """The words of a command, quoted as they are."""
    return _WORD.findall(command)


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    return f"\\x{ord(char):02x}" if char.isascii() else f"\\U{ord(char):08x}"
