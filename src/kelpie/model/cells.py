"""How wide a text is on a terminal, and lines that fit it. A terminal counts cells, not characters."""

import re
import unicodedata

_SPACE = re.compile(r"[ \t\n\r\f\v]+")
"""Not the no-break space: words that it joins stay together."""
_WIDEST = 2
"""Cells of the widest letter."""


def cells(text: str) -> int:
    """Cells on a terminal: wide letters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def padded(text: str, width: int) -> str:
    """With spaces behind it, up to so many cells."""
    return text + " " * (width - cells(text))


def shortened(text: str, width: int) -> str:
    """Its beginning and "…", if it has more cells than that."""
    if cells(text) <= width:
        return text
    begin, _ = _split(text, width - 1)
    return f"{begin}…"


def wrap(text: str, width: int, first: str = "", rest: str = "", *, breaks_words: bool = False) -> list[str]:
    """Lines of at most so many cells, of which the first begins with `first` and the others with `rest`.

    A word that is wider than a line has one of its own, or, with `breaks_words`, goes on in the next one.
    """
    lines: list[str] = []
    line, is_empty = first, True
    for word in filter(None, _SPACE.split(text)):
        room = width - cells(line) - (not is_empty)
        begins_here = breaks_words and cells(word) > width - cells(rest) and room >= _WIDEST
        if not is_empty and cells(word) > room and not begins_here:
            lines.append(line)
            line, is_empty = rest, True
        line, left = line if is_empty else f"{line} ", word
        while breaks_words and cells(line) + cells(left) > width:
            begin, left = _split(left, max(1, width - cells(line)))
            if not left:
                left = begin  # Not even one letter fits.
                break
            lines.append(line + begin)
            line = rest
        line, is_empty = line + left, False
    return lines if is_empty else [*lines, line]


def fill(text: str, width: int, first: str = "", rest: str = "", *, breaks_words: bool = False) -> str:
    return "\n".join(wrap(text, width, first, rest, breaks_words=breaks_words))


def _cells_of(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _split(text: str, width: int) -> tuple[str, str]:
    """The beginning that fits, of one letter at least, and what is left."""
    used = 0
    for at, sign in enumerate(text):
        used += _cells_of(sign)
        if used > width and at:
            return text[:at], text[at:]
    return text, ""
