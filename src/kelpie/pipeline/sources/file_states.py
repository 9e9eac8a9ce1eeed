"""What tables keep of files that change.

A stream looks at folders every few seconds, for months, and a log has grown each time. What it tells of
settings, brokers and groups is told of all of it again, and so is what is wrong with a file.
"""

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.evidence.recognition import Kind
from kelpie.pipeline.sources.inventory import FILES, Batch
from kelpie.pipeline.storage.lake import Lake, quoted
from kelpie.pipeline.tables import TABLES

_TOLD, _QUARANTINE = TABLES["cluster_snapshot"], TABLES["quarantine"]
_GROWING = {Kind.LOG, Kind.SEGMENT}
"""Others had something else to tell then."""
COMPLAINTS = ("scrapes", "surveys", "files")
"""What a batch quarantines apart, under names of its own."""
_AT_ONCE = 100
"""Conditions of one query."""


def forget_complaints(lake: Lake, batch: Batch, cluster: str) -> None:
    """What was wrong with files of this batch when they were others; before it tells anything itself.

    Those who read segments see to that themselves: they read only what is new.
    """
    told = [f"{batch.application}: {of}" for of in COMPLAINTS]
    if any(lake.version_of(_QUARANTINE, application) >= batch.number for application in told):
        return
    names = [item.file.name for item in batch.items if Kind.SEGMENT not in item.kinds]
    there = pc.field("source").isin(pa.array(names, pa.string()))
    found = sorted(set(lake.rows(_QUARANTINE, cluster, there)["source"].to_pylist()))
    if found:
        lake.delete(_QUARANTINE, cluster, f"source IN ({', '.join(map(quoted, found))})")


def forget_earlier_states(lake: Lake, batch: Batch, cluster: str) -> None:
    """Of logs and segments in this batch, which is done, only their newest state is kept."""
    growing = {item.path: item for item in batch.items if not _GROWING.isdisjoint(item.kinds)}
    earlier = pc.field("path").isin(pa.array(growing, pa.string())) & (pc.field("batch") < batch.number)
    rows = lake.rows(FILES, cluster, earlier).select(["path", "source"]).to_pylist()
    if not rows:
        return
    logs = sorted({row["source"] for row in rows if Kind.LOG in growing[row["path"]].kinds})
    # Groups that somebody has named stay known.
    is_earlier = (
        f"starts_with(snapshot, 'batch ') AND snapshot < {quoted(batch.snapshot)} AND kind <> 'known'"
    )
    for start in range(0, len(logs), _AT_ONCE):
        names = logs[start : start + _AT_ONCE]
        # A line is named by its file and its number.
        lines = " OR ".join(f"starts_with(source, {quoted(f'{name}:')})" for name in names)
        files = ", ".join(map(quoted, names))
        lake.delete(_TOLD, cluster, f"{is_earlier} AND (source IN ({files}) OR {lines})")
    paths = ", ".join(quoted(path) for path in sorted({row["path"] for row in rows}))
    lake.delete(FILES, cluster, f"path IN ({paths}) AND batch < {batch.number}")
