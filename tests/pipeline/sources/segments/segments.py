"""Segments for tests: commits in batches, in the folders of a broker; and tasks that run right here.

`ingest` does with segments what a run does with them, without Spark.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.recognition import Kind
from kelpie.pipeline.sources.inventory import LAST, plan, take_inventory
from kelpie.pipeline.sources.segments.files import (
    FILLED,
    SegmentFile,
    SegmentTaskResult,
)
from kelpie.pipeline.sources.segments.intake import Ingested, Runner, described, of_offsets_topic, take_in
from kelpie.pipeline.sources.segments.task import write
from kelpie.pipeline.sources.snapshots.outputs import Configurations
from kelpie.pipeline.storage.lake import Lake
from kelpie.places import Place
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.records import Record, write_batch

CLUSTER = "c"


@dataclass
class Here:
    """Runs tasks in this process, and remembers which."""

    ran: list[SegmentFile] = field(default_factory=list)
    tasks: int = 0

    def __call__(
        self, tasks: Sequence[Sequence[SegmentFile]], folders: Mapping[str, str]
    ) -> Iterable[SegmentTaskResult]:
        self.ran += [file for files in tasks for file in files]
        self.tasks += len(tasks)
        return [write(files, folders) for files in tasks]


def commit(log_offset: int, offset: int, *, group: str = "g", metadata: str = "") -> Record:
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    value = OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=1000 + log_offset)
    encoded = offsets_topic.encode_value(value, 3)
    return Record(log_offset, 1000 + log_offset, key=offsets_topic.encode_key(key), value=encoded)


def batches(first: int, count: int, *, leader_epoch: int = 0, group: str = "g") -> bytes:
    """One commit a batch; the committed offset is ten times the place in the log."""
    return b"".join(
        write_batch([commit(number, 10 * number, group=group)], leader_epoch=leader_epoch)
        for number in range(first, first + count)
    )


def segment(disk: Path, data: bytes, *, partition: int = 0, base_offset: int = 0) -> Path:
    folder = disk / f"__consumer_offsets-{partition}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{base_offset:020}.log"
    file.write_bytes(data)
    return file


def ingest(lake: Lake, folders: Sequence[Place], run: Runner) -> Ingested:
    """Batches that were begun and not ended, and what is new in the folders. What the last of them added."""
    cluster, room = CLUSTER, Path("no-archive-is-unpacked")
    inventory = take_inventory(folders, Search(room, Budget()), room)
    disks = Configurations(inventory.of(Kind.CONFIGURATION)).disks
    done = Ingested()
    for batch in plan(lake, cluster, inventory):
        files = of_offsets_topic(described(batch.of(Kind.SEGMENT), disks), cluster)
        done = take_in(lake, files, run, cores=1, application=batch.application, version=batch.number)
        lake.append_rows(LAST, cluster, [], application=batch.application, version=batch.number)
    return done


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    """All rows of a bronze table, in an order of their own."""
    (table,) = (table for table in FILLED if table.name == name)
    found = DeltaTable(str(lake.path(table))).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: tuple(str(row[column]) for column in ("source", *table.key)))


def offsets(lake: Lake) -> list[int]:
    return sorted(row["log_offset"] for row in rows(lake, "offset_commit"))
