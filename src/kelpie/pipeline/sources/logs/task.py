"""What tasks do with logs: read parts of them; then, when all parts are known, complete and write the rows.

Between the two steps, the rows of each part are in a staged file; the driver gets only what it must know.
This runs in the workers.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import tzinfo
from itertools import pairwise

from kelpie.evidence.unreadable import unreadable
from kelpie.pipeline.sources.logs.parts import LogTaskResult, Piece, Task, part_of
from kelpie.pipeline.sources.logs.ranges import last_head, read_range
from kelpie.pipeline.sources.logs.reader import RowReader, Whole, read_whole
from kelpie.pipeline.sources.logs.rows import EVENTS, as_table, columns_of, settled, stage, staged
from kelpie.pipeline.spark.workers import spare_modules
from kelpie.pipeline.storage.parquet import NewFile, Writer
from kelpie.places import place_of


def read(task: Task, staging: str, zone: tzinfo | None) -> list[LogTaskResult]:
    """Reads one range. The last entry of a file may be incomplete, so it is a part of its own."""
    try:
        with _without_collector():
            if task.whole:
                return [_kept(task, _whole(task, zone), staging)]
            try:
                ranges = _ranges(task, zone)
            except Whole:
                if task.pieces > 1 or task.begins:
                    return [LogTaskResult(task)]
                ranges = {task.begins: _whole(task, zone)}
            results = [_kept(task, reader, staging) for reader in ranges.values()]
            if len(results) > 1:
                results[-1] = replace(results[-1], last_entry=max(ranges))
            return results
    except OSError as error:
        return [LogTaskResult(task, reason=unreadable(error))]
    except Exception as error:  # One file of many, of unknown origin: it must not stop the others.
        return [LogTaskResult(task, reason=f"It made Kelpie stumble ({type(error).__name__}: {error}).")]


def write(pieces: Sequence[Piece], folder: str, cluster: str) -> list[NewFile]:
    """Completes the rows of these pieces and writes them. `folder`: that of log_event."""
    writer = Writer(EVENTS, place_of(folder), cluster)
    with _without_collector():
        for piece in pieces:
            rows = settled(staged(piece.rows), piece.known, piece.source)
            constants = {"source": piece.source, "log": piece.log}
            writer.write(as_table(rows).slice(piece.skip), constants)
    return writer.close()


def _ranges(task: Task, zone: tzinfo | None) -> dict[int, RowReader]:
    """Readers by the start of their range: one, or two at the end of a file. Raises Whole, OSError."""
    path, bounds = place_of(task.path), [task.begins, task.ends]
    if task.piece == task.pieces - 1:
        last = last_head(path, task.begins, task.ends)
        if last is not None and last > task.begins:
            bounds.insert(1, last)
    readers = {}
    for begins, ends in pairwise(bounds):
        readers[begins] = read_range(path, task.name, zone, begins, ends, encoding=task.encoding)
        if not readers[begins].is_plain and ends < task.ends:
            whole = read_range(path, task.name, zone, task.begins, task.ends, encoding=task.encoding)
            return {task.begins: whole}
    return readers


def _whole(task: Task, zone: tzinfo | None) -> RowReader:
    return read_whole(place_of(task.path), task.name, zone, task.encoding, task.layout)


def _kept(task: Task, reader: RowReader, staging: str) -> LogTaskResult:
    part = part_of(reader)
    if not reader.rows:
        return LogTaskResult(task, part)
    return LogTaskResult(task, part, stage(columns_of(reader.rows), staging), len(reader.rows))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Rows have no reference cycles, and the collector's search for them is slow."""
    spare_modules()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
