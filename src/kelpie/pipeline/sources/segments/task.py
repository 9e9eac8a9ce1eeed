"""What a task does with ranges of segment files: decode, write Parquet files, tell the driver which.

This runs in the workers, and only there: the driver has no use for compiled code, and loading it takes a
second.
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
    Done,
    Outcome,
    Range,
)
from kelpie.pipeline.storage.parquet import NewFile, Writer

_UNREAD = pa.schema([QUARANTINE.schema.field(name) for name in ("position", "size", "reason", "bytes")])


def write(parts: Sequence[Range], folders: Mapping[str, str]) -> Outcome:
    """Files by table, for all these ranges together; and where each range began and ended."""
    writers = {
        (table.name, cluster): Writer(table, Path(folders[table.name]), cluster)
        for table in FILLED
        for cluster in {part.cluster for part in parts}
    }
    done: list[Done] = []
    for part in parts:
        constants = constants_of(part)
        try:
            with opened(part) as reader:
                for read in reader:
                    for table, rows in tables_of(read):
                        writers[table, part.cluster].write(rows, constants)
                seen = reader.first, reader.end, reader.tail, reader.offsets, reader.newest
                done.append(Done(part, *seen))
        except OSError as error:  # Gone since it was found, or not ours to read.
            unread = Unread(part.start, part.stop - part.start, f"not readable: {error.strerror}", b"")
            writers[QUARANTINE.name, part.cluster].write(quarantine([unread]), constants)
            told = f"{error.strerror or error}, on {socket.gethostname()}"
            done.append(Done(part, part.start, part.stop, part.start, error=told))
    files: dict[str, list[NewFile]] = {table.name: [] for table in FILLED}
    for (name, _), writer in writers.items():
        files[name] += writer.close()
    return Outcome(done, files)


@contextmanager
def opened(part: Range) -> Iterator[Reader]:
    """Raises OSError."""
    with Path(part.path).open("rb") as file:
        lowest = lowest_offset(Path(part.source or part.path))
        yield Reader(file, part.start, part.stop, part.cut, lowest)


def constants_of(part: Range) -> dict[str, object]:
    """What all its rows have in common."""
    return {
        "source": part.source or part.path,
        "replica": part.replica,
        "offsets_partition": part.partition,
    }


def tables_of(read: Read) -> Iterator[tuple[str, pa.Table]]:
    """Rows by table, without what all of them have in common."""
    groups, senseless = group_metadata(read.others)
    unread = [
        *read.unread,
        *(
            Unread(
                it["position"], it["size"], f"the record at offset {it['log_offset']}: {reason}", it["key"]
            )
            for it, reason in senseless
        ),
    ]
    yield COMMITS.name, read.commits
    yield MARKERS.name, read.markers
    yield GROUPS.name, groups
    yield QUARANTINE.name, quarantine(unread)


def quarantine(unread: Sequence[Unread]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"position": it.position, "size": it.size, "reason": it.reason, "bytes": it.head} for it in unread],
        _UNREAD,
    )
