"""What tables keep of files that change: only what their newest state says.

A stream reads folders every few seconds, for months, and a log has grown each time. Each time it says all of
its settings, brokers and groups again; so does quarantine for a file that has something wrong.
"""

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.evidence.recognition import Kind
from kelpie.pipeline.sources.inventory import FILES, FileBatch
from kelpie.pipeline.storage.lake import Lake, quoted
from kelpie.pipeline.tables import TABLES

_SNAPSHOTS, _QUARANTINE = TABLES["cluster_snapshot"], TABLES["quarantine"]
_GROWING = {Kind.LOG, Kind.SEGMENT}
"""Files of other kinds said something else in each state, so all states are kept."""
COMPLAINTS = ("scrapes", "surveys", "files")
"""Parts of a batch that write to quarantine, each under its own application name."""
_AT_ONCE = 100
"""Conditions in one query."""


def forget_complaints(lake: Lake, batch: FileBatch, cluster: str) -> None:
    """Deletes quarantine rows about earlier states of this batch's files, before the batch writes new ones.

    Segments are left out: `segments.replaced` does it for them, as only their new part is read.
    """
    applications = [f"{batch.application}: {of}" for of in COMPLAINTS]
    if any(lake.version_of(_QUARANTINE, application) >= batch.number for application in applications):
        return
    names = [item.file.name for item in batch.items if Kind.SEGMENT not in item.kinds]
    of_batch = pc.field("source").isin(pa.array(names, pa.string()))
    complained = sorted(set(lake.rows(_QUARANTINE, cluster, of_batch)["source"].to_pylist()))
    if complained:
        lake.delete(_QUARANTINE, cluster, f"source IN ({', '.join(map(quoted, complained))})")


def forget_earlier_states(lake: Lake, batch: FileBatch, cluster: str) -> None:
    """Deletes rows of earlier states of logs and segments, after the batch with their newest state."""
    growing = {item.path: item for item in batch.items if not _GROWING.isdisjoint(item.kinds)}
    earlier = pc.field("path").isin(pa.array(growing, pa.string())) & (pc.field("batch") < batch.number)
    rows = lake.rows(FILES, cluster, earlier).select(["path", "source"]).to_pylist()
    if not rows:
        return
    logs = sorted({row["source"] for row in rows if Kind.LOG in growing[row["path"]].kinds})
    # Groups that an earlier state named stay known.
    is_earlier = (
        f"starts_with(snapshot, 'batch ') AND snapshot < {quoted(batch.snapshot)} AND kind <> 'known'"
    )
    for start in range(0, len(logs), _AT_ONCE):
        names = logs[start : start + _AT_ONCE]
        # The source of a line is the file and the number of the line.
        lines = " OR ".join(f"starts_with(source, {quoted(f'{name}:')})" for name in names)
        files = ", ".join(map(quoted, names))
        lake.delete(_SNAPSHOTS, cluster, f"{is_earlier} AND (source IN ({files}) OR {lines})")
    paths = ", ".join(quoted(path) for path in sorted({row["path"] for row in rows}))
    lake.delete(FILES, cluster, f"path IN ({paths}) AND batch < {batch.number}")
