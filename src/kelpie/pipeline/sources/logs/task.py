"""What tasks do with logs: read parts of them, and write the rows when all parts are known.

Between the two the rows lie in files beside the tables, for one part each; only what the driver must know
goes through it. This runs in the workers.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path

from kelpie.evidence.unreadable import unreadable
from kelpie.pipeline.sources.logs.parts import part_of
from kelpie.pipeline.sources.logs.plan import Outcome, Piece, Task
from kelpie.pipeline.sources.logs.ranges import last_head, read_range
from kelpie.pipeline.sources.logs.reader import RowReader, Whole, read_whole
from kelpie.pipeline.sources.logs.rows import EVENTS, as_table, columns_of, settled, stage, staged
from kelpie.pipeline.storage.parquet import NewFile, Writer


def read(task: Task, staging: str, zone: tzinfo | None) -> list[Outcome]:
    """The last entry of a file may go on in what is not written yet: it is a part of its own."""
    try:
        with _without_collector():
            if task.whole:
                return [_kept(task, _whole(task, zone), staging)]
            try:
                ranges = _ranges(task, zone)
            except Whole:
                if task.pieces > 1 or task.begins:
                    return [Outcome(task)]
                ranges = {task.begins: _whole(task, zone)}
            outcomes = [_kept(task, reader, staging) for reader in ranges.values()]
            if len(outcomes) > 1:
                outcomes[-1] = replace(outcomes[-1], last_entry=max(ranges))
            return outcomes
    except OSError as error:
        return [Outcome(task, reason=unreadable(error))]
    except Exception as error:  # One file of many, from anywhere: the others must not pay for it.
        return [Outcome(task, reason=f"It made Kelpie stumble ({type(error).__name__}: {error}).")]


def write(pieces: Sequence[Piece], folder: str, cluster: str) -> list[NewFile]:
    """Rows of log_event, set right; `folder` is the table's."""
    writer = Writer(EVENTS, Path(folder), cluster)
    with _without_collector():
        for piece in pieces:
            rows = settled(staged(piece.rows), piece.known, piece.source)
            constants = {"source": piece.source, "log": piece.log}
            writer.write(as_table(rows).slice(piece.skip), constants)
    return writer.close()


def _ranges(task: Task, zone: tzinfo | None) -> dict[int, RowReader]:
    """By where they begin: one, or, at the end of a file, two. Raises Whole, OSError."""
    path, bounds = Path(task.path), [task.begins, task.ends]
    if task.piece == task.pieces - 1:
        last = last_head(path, task.begins, task.ends)
        if last is not None and last > task.begins:
            bounds.insert(1, last)
    found = {}
    for begins, ends in pairwise(bounds):
        found[begins] = read_range(path, task.name, zone, begins, ends, encoding=task.encoding)
        if not found[begins].is_plain and ends < task.ends:
            whole = read_range(path, task.name, zone, task.begins, task.ends, encoding=task.encoding)
            return {task.begins: whole}
    return found


def _whole(task: Task, zone: tzinfo | None) -> RowReader:
    return read_whole(Path(task.path), task.name, zone, task.encoding, task.layout)


def _kept(task: Task, reader: RowReader, staging: str) -> Outcome:
    part = part_of(reader)
    if not reader.rows:
        return Outcome(task, part)
    return Outcome(task, part, stage(columns_of(reader.rows), staging), len(reader.rows))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Rows have no cycles, and looking for some takes long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
