"""What a task does with segment files: decode them, write Parquet files, return their names.

Loading the compiled code takes a second: a driver imports this only when there are segments that it reads
itself (`spark.tasks`).
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from kelpie.pipeline.decoding.group_records import group_metadata
from kelpie.pipeline.decoding.segment import Read, Reader, Unread, lowest_offset
from kelpie.pipeline.sources.segments.files import (
    COMMITS,
    FILLED,
    GROUPS,
    MARKERS,
    QUARANTINE,
    ReadFile,
    SegmentFile,
    SegmentTaskResult,
)
from kelpie.pipeline.spark.workers import spare_modules
from kelpie.pipeline.storage.parquet import NewFile, Writer
from kelpie.places import place_of

_UNREAD = pa.schema([QUARANTINE.schema.field(name) for name in ("position", "size", "reason", "bytes")])


def write(files: Sequence[SegmentFile], folders: Mapping[str, str]) -> SegmentTaskResult:
    """Decodes these files and writes one file per table and cluster, for all of them together."""
    spare_modules()
    writers = {
        (table.name, cluster): Writer(table, place_of(folders[table.name]), cluster)
        for table in FILLED
        for cluster in {file.cluster for file in files}
    }
    results: list[ReadFile] = []
    for file in files:
        constants = constants_of(file)
        try:
            with opened(file) as reader:
                for read in reader:
                    for table, rows in tables_of(read):
                        writers[table, file.cluster].write(rows, constants)
                results.append(ReadFile(file, reader.end, reader.tail, reader.offsets, reader.newest))
        except OSError as error:  # Deleted since the inventory, or not ours to read.
            unread = Unread(file.start, file.size - file.start, f"not readable: {error.strerror}", b"")
            writers[QUARANTINE.name, file.cluster].write(quarantine([unread]), constants)
            why = f"{error.strerror or error}, on {socket.gethostname()}"
            results.append(ReadFile(file, file.size, file.start, error=why))
    written: dict[str, list[NewFile]] = {table.name: [] for table in FILLED}
    for (name, _), writer in writers.items():
        written[name] += writer.close()
    return SegmentTaskResult(results, written)


@contextmanager
def opened(file: SegmentFile) -> Iterator[Reader]:
    """Raises OSError."""
    with place_of(file.path).open("rb") as data:
        yield Reader(data, file.start, file.size, lowest_offset(Path(file.name)))


def constants_of(file: SegmentFile) -> dict[str, object]:
    """What all its rows have in common."""
    return {"source": file.name, "replica": file.replica, "offsets_partition": file.partition}


def tables_of(read: Read) -> Iterator[tuple[str, pa.Table]]:
    """Rows by table, without what all of them have in common."""
    groups, senseless = group_metadata(read.others)
    unread = [
        *read.unread,
        *(
            Unread(
                record["position"],
                record["size"],
                f"the record at offset {record['log_offset']}: {reason}",
                record["key"],
            )
            for record, reason in senseless
        ),
    ]
    yield COMMITS.name, read.commits
    yield MARKERS.name, read.markers
    yield GROUPS.name, groups
    yield QUARANTINE.name, quarantine(unread)


def quarantine(unread: Sequence[Unread]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"position": part.position, "size": part.size, "reason": part.reason, "bytes": part.head}
            for part in unread
        ],
        _UNREAD,
    )
