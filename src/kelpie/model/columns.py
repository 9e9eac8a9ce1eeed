"""Columns of a table that is wider than its terminal: which of them are folded, and how."""

from collections.abc import Sequence
from itertools import zip_longest

from kelpie.model.cells import cells, wrap

_LEAST = 20
_NAME = 30
"""Words that are longer are names or paths; they may be broken. Times and addresses stay whole."""


def narrowed(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """The width of each column. Together they take up `room` cells at most, if that can be: the widest cells
    are folded between their words; where that is not enough, long names are broken.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(cells, column)) for column in columns]
    words = [max((cells(word) for cell in column for word in cell.split()), default=0) for column in columns]
    for least in (words, [_LEAST if each > _NAME else each for each in words]):
        for at in sorted(range(len(widths)), key=lambda at: -widths[at]):
            over = sum(widths) - room
            if over > 0:
                widths[at] = min(widths[at], max(least[at], widths[at] - over))
    return widths


def in_lines(row: Sequence[str], widths: Sequence[int]) -> list[tuple[str, ...]]:
    """The cells of a row, line by line; one line if all of them fit."""
    folded = [
        wrap(cell, width, breaks_words=True) if cells(cell) > width else [cell]
        for cell, width in zip(row, widths, strict=True)
    ]
    return list(zip_longest(*folded, fillvalue=""))
