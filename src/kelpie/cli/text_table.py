"""Rows of text in columns, for a terminal."""

from collections.abc import Iterable, Sequence

from kelpie.model.cells import cells, padded, wrap
from kelpie.model.columns import in_lines, narrowed
from kelpie.model.quoting import harmless

_GAP = "  "
_BELOW = "    "
_LEAST_ROOM = 20


def fitting(
    head: Sequence[str], rows: Sequence[Sequence[str]], dispensable: Iterable[str], width: int | None
) -> tuple[str, list[str]]:
    """A table that is not wider than that, and the columns that were left out for it, in their order.

    Only dispensable columns are left out, the first of them first. A long name is folded: for its sake, no
    other column is left out.
    """
    left_out: set[str] = set()
    widths = {
        name: max(map(cells, map(harmless, (name, *column))))
        for name, *column in zip(head, *rows, strict=True)
    }
    most = max(_LEAST_ROOM, width // 2) if width is not None else None
    for name in dispensable:
        shown = (min(each, most or each) for name, each in widths.items() if name not in left_out)
        if width is None or sum(len(_GAP) + each for each in shown) - len(_GAP) <= width:
            break
        left_out.add(name)
    kept = [at for at, name in enumerate(head) if name not in left_out]
    table = text_table([[row[at] for at in kept] for row in (head, *rows)], width)
    return table, [name for name in head if name in left_out]


def text_table(rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Nothing in a cell is obeyed by the terminal: names and sources come from brokers and files.

    `width`: what does not fit of a last cell goes on below it, or below its row where there is hardly room.
    Other columns are folded if they alone are too wide.
    """
    rows = [[harmless(cell) for cell in row] for row in rows]
    widths = _widths(rows, width)
    start = sum(len(_GAP) + each for each in widths)
    lines = []
    for *begin, last in rows:
        beside, below = _last(last, start, width)
        folded = in_lines(begin, widths) or [()]
        for at in range(max(len(folded), len(beside))):
            row = folded[at] if at < len(folded) else ("",) * len(widths)
            end = beside[at] if at < len(beside) else ""
            padding = [padded(cell, each) for cell, each in zip(row, widths, strict=True)]
            lines.append(_GAP.join([*padding, end]).rstrip())
        lines += below
    return "\n".join(lines)


def _widths(rows: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Of all columns but the last."""
    begins = [row[:-1] for row in rows]
    whole = [max(map(cells, column)) for column in zip(*begins, strict=True)]
    if width is None:
        return whole
    left = width - len(_GAP) * len(whole)
    wanted = min(_LEAST_ROOM, max(cells(row[-1]) for row in rows))
    # Room for the last cells, or else for their heading, or for neither: what does not fit stands below.
    for last in (wanted, cells(rows[0][-1]), 0):
        widths = narrowed(begins, left - last)
        if sum(widths) + last <= left:
            return widths
    return widths


def _last(cell: str, start: int, width: int | None) -> tuple[list[str], list[str]]:
    """The lines of a last cell beside its row, and those below it."""
    room = cells(cell) if width is None else width - start
    if cells(cell) <= room:
        return [cell], []
    beside = wrap(cell, room)
    if room >= _LEAST_ROOM and max(map(cells, beside)) <= room:
        return beside, []
    return [], wrap(cell, max(_LEAST_ROOM, width or 0), _BELOW, _BELOW)
