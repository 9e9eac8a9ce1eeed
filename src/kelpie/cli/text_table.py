"""Rows of text in columns, for a terminal."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence

from kelpie.model.quoting import harmless


def terminal_width() -> int | None:
    """Columns of the terminal. None: output goes to a file or a program, and $COLUMNS does not say."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None


def fitting(
    head: Sequence[str], rows: Sequence[Sequence[str]], dispensable: Iterable[str], width: int | None
) -> tuple[str, list[str]]:
    """A table that is not wider than that, and the columns that were left out for it, in their order.

    Only dispensable columns are left out, the first of them first.
    """
    left_out: set[str] = set()
    widths = {name: max(map(_width, (name, *column))) for name, *column in zip(head, *rows, strict=True)}
    for name in dispensable:
        total = sum(2 + each for name, each in widths.items() if name not in left_out) - 2
        if width is None or total <= width:
            break
        left_out.add(name)
    shown = [at for at, name in enumerate(head) if name not in left_out]
    table = text_table([[row[at] for at in shown] for row in (head, *rows)])
    return table, [name for name in head if name in left_out]


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Nothing in a cell is obeyed by the terminal: names and sources come from brokers and files."""
    rows = [[harmless(cell) for cell in row] for row in rows]
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
