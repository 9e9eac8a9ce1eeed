"""Rows of text in columns, for a terminal."""

import unicodedata
from collections.abc import Sequence


def text_table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def _width(text: str) -> int:
    """Columns on a terminal: wide letters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )
