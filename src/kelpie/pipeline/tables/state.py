"""What rounds leave for the next round (`rounds`): rows of inputs that must be read again, and by it only.

They are tables of the lake like all others, so that they are committed and cleaned up like all others.
"""

from dataclasses import replace

from kelpie.pipeline.tables.bronze import OFFSET_COMMIT, TRANSACTION_MARKER
from kelpie.pipeline.tables.silver import COMMIT_TIMELINE
from kelpie.pipeline.tables.table import LakeTable, required
from kelpie.pipeline.tables.types import STRING

WHY = "carried"
"""The column that says why a row is carried."""


def _carried(name: str, of: LakeTable, why: str) -> LakeTable:
    meaning = f"Rows of {of.name} that the next round needs again."
    columns = (*of.columns, required(WHY, STRING, why))
    return replace(of, name=name, layer="state", meaning=meaning, columns=columns)


CARRIED_COMMIT = _carried(
    "carried_commit",
    OFFSET_COMMIT,
    "settled: the last one that counted; pending: its transaction has not ended; open: it counted after a "
    "pending one of the same position; epoch: the first one of a leader epoch",
)
CARRIED_MARKER = _carried(
    "carried_marker",
    TRANSACTION_MARKER,
    "ahead: commits before it may still come; epoch: the first one of a leader epoch",
)
CARRIED_POSITION = _carried(
    "carried_position",
    COMMIT_TIMELINE,
    "high: the highest offset; back: a regression that has not ended; last: the last row",
)

STATE: dict[str, LakeTable] = {
    table.name: table for table in (CARRIED_COMMIT, CARRIED_MARKER, CARRIED_POSITION)
}
