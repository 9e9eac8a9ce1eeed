"""Rows of text in columns, for a terminal."""

from collections.abc import Iterable, Sequence

from kelpie.model.cells import cells, padded, wrap
from kelpie.model.quoting import harmless

_GAP = "  "
_LEAST_ROOM = 20


def fitting(
    head: Sequence[str], rows: Sequence[Sequence[str]], dispensable: Iterable[str], width: int | None
) -> tuple[str, list[str]]:
    """A table that is not wider than that, and the columns that were left out for it, in their order.

    Only dispensable columns are left out, the first of them first.
    """
    left_out: set[str] = set()
    widths = {
        name: max(map(cells, map(harmless, (name, *column))))
        for name, *column in zip(head, *rows, strict=True)
    }
    for name in dispensable:
        total = sum(2 + each for name, each in widths.items() if name not in left_out) - 2
        if width is None or total <= width:
            break
        left_out.add(name)
    shown = [at for at, name in enumerate(head) if name not in left_out]
    table = text_table([[row[at] for at in shown] for row in (head, *rows)])
    return table, [name for name in head if name in left_out]


def text_table(rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Nothing in a cell is obeyed by the terminal: names and sources come from brokers and files.

    `width`: what does not fit of a last cell goes on below it, if there is room for it at all.
    """
    rows = [[harmless(cell) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    start = sum(widths[:-1]) + len(_GAP) * len(widths[:-1])
    room = max(_LEAST_ROOM, width - start) if width is not None else widths[-1]
    lines = []
    for row in rows:
        first, *others = wrap(row[-1], room) if cells(row[-1]) > room else [row[-1]]
        begin = [padded(cell, each) for cell, each in zip(row[:-1], widths[:-1], strict=True)]
        lines += [_GAP.join([*begin, first]).rstrip(), *(" " * start + other for other in others)]
    return "\n".join(lines)
