"""Names and log lines are what others wrote: on a terminal they must be text and nothing else."""

import re
import unicodedata

_COMMAND = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control and format characters, surrogates, separators: what moves cursors, colours, or turns text round."""

_PLAIN = re.compile(r"[\x20-\x7e]*")


def harmless(text: str) -> str:
    r"""The text with everything written out that a terminal would obey: "\x1b[2J"."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_spelt(sign) if unicodedata.category(sign) in _COMMAND else sign for sign in text)


def _spelt(sign: str) -> str:
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
