"""Logs of brokers and clients into `log_event`: a range of a file is a task.

Lines tell whose they are by what came before, some logs tell no more than the time of day, and a big log is
read in ranges at once. What only a whole file tells (`parts`), or only all files together (the date of a
log without one, a group that nothing but the name of the file gives away), is set right by a second round of
tasks, which writes the files of the table. So the driver sees what logs say of clients and groups, and no
row; and the JVM sees nothing of it.

A log that cannot be read in ranges is read in one task, line by line. One that has grown is read on from
where it was left (`progress`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelpie.evidence.folder import NOTHING_KNOWN
from kelpie.evidence.logs import Reading
from kelpie.evidence.logs.attribution import group_in_name
from kelpie.evidence.logs.hints import MISFIT, NO_HINTS, Hints, Layout
from kelpie.model.time import Instant
from kelpie.observations import Event
from kelpie.observations.encoding import decode
from kelpie.observations.events import FACTS
from kelpie.pipeline.sources.inventory import Item, instant
from kelpie.pipeline.sources.logs.identity import Look, Seen, copies, is_as_it_was, steps_of
from kelpie.pipeline.sources.logs.parts import Part, Unjoinable, folded, merged
from kelpie.pipeline.sources.logs.plan import Outcome, Piece, Task
from kelpie.pipeline.sources.logs.progress import Found, Ledger, Progress
from kelpie.pipeline.sources.logs.reader import can_be_split
from kelpie.pipeline.sources.logs.rows import EVENTS, rows_of_line, settled, staged
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import NewFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANGE_BYTES = 32 << 20
_ROWS_A_TASK = 50_000
_TASKS_PER_CORE = 3
_CHANGED = "It became another file while it was read. What it is by now is read the next time."


@dataclass(slots=True)
class Log:
    """What tasks say of a log, beside its events."""

    reading: Reading
    """Without its events; lines that mean nothing may be missing in its `heads` and `unknown`."""
    reason: str = ""
    """Why it is of no use."""
    changed: bool = False
    """Of no use this time only: it was taken away, or emptied, while it was read."""
    ungrouped: bool = False
    """Whether there are events of clients that nothing in the file gives a group."""
    began: Instant | None = None
    """Its first time, before its date was settled."""
    pieces: Sequence[Piece] = ()
    progress: Progress | None = None
    """Where to go on when it has grown."""
    replaces: Sequence[Progress] = ()
    """Whose rows have to go before those of its pieces come."""
    renames: Progress | None = None
    """Whose rows stay, under its name: lines are looked for where they are."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A log to be read: from where it was left, or from its beginning; as a whole if nothing else helps."""

    item: Item
    found: Found
    layout: Layout | None = None
    whole: bool = False

    @property
    def path(self) -> str:
        return self.item.path

    @property
    def is_as_it_was(self) -> bool:
        return is_as_it_was(self.item.file.path, self.path, self.found.look)

    @property
    def anew(self) -> "_Work":
        if self.found.go_on is not None:
            return replace(self, found=self.found._replace(go_on=None))
        return replace(self, whole=True)


def read_logs(
    spark: "SparkSession",
    items: Sequence[Item],
    staging: Path,
    ledger: Ledger,
    *,
    hints: Hints = NO_HINTS,
    range_bytes: int = RANGE_BYTES,
) -> list[Log]:
    """What logs say, by name, as files are gone through; their rows wait in the folder `staging`."""
    reading = partial(_read, spark, staging=staging, zone=hints.zone, range_bytes=range_bytes)
    works = {item.path: _Work(item, _found(ledger, item), hints.layout_of(item.file.name)) for item in items}
    others = copies(Seen(it.path, it.item.file.path, it.found.look) for it in works.values())
    logs = reading([work for path, work in works.items() if path not in others])
    logs |= reading(_without_rows(works[copy], logs[other], ledger) for copy, other in others.items())
    return sorted(logs.values(), key=lambda it: it.reading.name.split("/"))


def _without_rows(copy: _Work, other: Log, ledger: Ledger) -> _Work:
    """What it says goes without saying, if the other one says it; if not, things have changed."""
    if other.progress is None:
        return replace(copy, found=_found(ledger, copy.item))
    return replace(copy, found=copy.found._replace(told_as=other.progress.names))


def _read(
    spark: "SparkSession",
    works: Iterable[_Work],
    *,
    staging: Path,
    zone: tzinfo | None,
    range_bytes: int,
) -> dict[str, Log]:
    """By path."""
    logs: dict[str, Log] = {}
    todo = list(works)
    while todo:
        tasks = [task for work in todo for task in _tasks(work, range_bytes)]
        outcomes = _by_name(_run(spark, tasks, staging, zone))
        again = []
        for work in todo:
            name = work.item.file.name
            log = _log(work, outcomes[name])
            if log is None:
                again.append(work.anew)
            elif (log.reason and not work.found.look.log) or work.is_as_it_was:
                logs[work.path] = log
            else:
                logs[work.path] = Log(Reading(name), _CHANGED, changed=True)
        todo = again
    return logs


def correct(logs: Sequence[Log], known: Mapping[str, str]) -> None:
    """What all files together tell: dates, and groups by names of files.

    `known`: groups that somebody knows of; what is learned from names of files is noted with each log.
    """
    for log in logs:
        reading = log.reading
        shift: int | None = 0
        if log.began is not None:
            shift = None if reading.first is None else reading.first - log.began
        named = None
        if log.ungrouped and not reading.found.known_groups:
            named = group_in_name(reading.name, known)
        if named is not None:
            reading.found.known_groups[named] = f"the name of {reading.name}"
        log.pieces = [
            replace(piece, known=replace(piece.known, shift_ms=shift, named=named)) for piece in log.pieces
        ]


def write_logs(spark: "SparkSession", logs: Sequence[Log], folder: Path, cluster: str) -> list[NewFile]:
    """Files with the rows of all these logs in the folder of the table; no commit knows them yet."""
    pieces = [piece for log in logs for piece in log.pieces]
    tasks: list[list[Piece]] = []
    rows = _ROWS_A_TASK
    for piece in pieces:
        if rows >= _ROWS_A_TASK:
            tasks.append([])
            rows = 0
        tasks[-1].append(piece)
        rows += piece.count

    def task(some: Sequence[Piece]) -> list[NewFile]:
        from kelpie.pipeline.sources.logs.task import write  # noqa: PLC0415 - not in the driver.

        return write(some, str(folder), cluster)

    if not tasks:
        return []
    return spark.sparkContext.parallelize(tasks, len(tasks)).flatMap(task).collect()


def change_rows(lake: Lake, cluster: str, logs: Sequence[Log]) -> None:
    """Of earlier batches: those that are told anew go, and those of logs that were renamed are, too."""
    for log in logs:
        for earlier in log.replaces:
            lake.delete(EVENTS, cluster, earlier.where)
        if log.renames is not None:
            lake.update(EVENTS, cluster, log.renames.where, {"source": log.reading.name})


def _found(ledger: Ledger, item: Item) -> Found:
    try:
        return ledger.find(item.path, item.file.path, item.file.size)
    except OSError:
        return Found(Look("", item.file.size))  # The task will say why.


def _tasks(work: _Work, range_bytes: int) -> list[Task]:
    file, go_on, size = work.item.file, work.found.go_on, work.found.look.size
    begins = 0 if go_on is None else go_on.end
    task = Task(file.name, str(file.path), work.item.encoding, work.layout, begins=begins, ends=size)
    if work.whole or work.layout is not None:
        return [task._replace(whole=True)]
    if size - begins <= range_bytes:
        return [task]
    try:
        splits = go_on is not None or can_be_split(file.path, work.item.encoding)
    except OSError:
        splits = False  # The task will say why.
    if not splits:
        return [task._replace(whole=True)]
    bounds = [*range(begins, size, range_bytes), size]
    return [
        task._replace(piece=number, pieces=len(bounds) - 1, begins=begins, ends=ends)
        for number, (begins, ends) in enumerate(pairwise(bounds))
    ]


def _run(spark: "SparkSession", tasks: Sequence[Task], staging: Path, zone: tzinfo | None) -> list[Outcome]:
    def task(it: Task) -> list[Outcome]:
        from kelpie.pipeline.sources.logs.task import read  # noqa: PLC0415 - not in the driver.

        return read(it, str(staging), zone)

    if not tasks:
        return []
    context = spark.sparkContext
    slices = min(len(tasks), context.defaultParallelism * _TASKS_PER_CORE)
    return context.parallelize(tasks, slices).flatMap(task).collect()


def _by_name(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.task.name, []).append(outcome)
    return found


def _log(work: _Work, outcomes: Sequence[Outcome]) -> Log | None:
    """None: it must be read anew, from further back."""
    name, go_on = work.item.file.name, work.found.go_on
    broken = next((it.reason for it in outcomes if it.reason), "")
    if broken:
        return Log(Reading(name), broken)
    parts = [it.part for it in outcomes if it.part is not None]
    if len(parts) < len(outcomes):
        return None
    before = [] if go_on is None or go_on.part is None else [go_on.part]
    try:
        whole = merged([*before, *parts])
    except Unjoinable:
        return None
    whole.reading.name = name
    known = whole.known[len(before) :]
    pieces = [
        Piece(name, work.found.look.log, it.rows, it.count, each)
        for it, each in zip(outcomes, known, strict=True)
        if it.count
    ]
    log = Log(whole.reading, ungrouped=whole.ungrouped, began=whole.reading.first, pieces=pieces)
    replaces = [work.found.outdated]
    if go_on is None:
        replaces += [work.found.replaces] if not work.found.told_as else []
        log.reason = "" if whole.reading.heads or pieces else NOTHING_KNOWN
        if work.layout is not None and not whole.reading.heads:
            log.reason = MISFIT
    elif whole.known[0] != go_on.known or not _is_as_written(go_on, log):
        return None
    elif go_on.name != name and not work.found.told_as:
        log.renames = go_on
    log.replaces = [it for it in replaces if it is not None]
    log.progress = _progress(work, outcomes, [*before, *parts], log)
    if work.found.told_as:
        log.pieces = []
    return log


def _is_as_written(go_on: Progress, log: Log) -> bool:
    """Whether the entry that was the last one tells what it told; then that need not be told again."""
    assert go_on.part is not None
    place, written = go_on.part.lines + 1, go_on.last
    if written is None:
        return True
    if not log.pieces:
        return False
    piece, *others = log.pieces
    if rows_of_line(settled(staged(piece.rows), piece.known, piece.source), place) != written:
        return False
    log.pieces = [replace(piece, skip=len(written["line"])), *others]
    return True


def _progress(work: _Work, outcomes: Sequence[Outcome], parts: Sequence[Part], log: Log) -> Progress:
    """Where to go on, if it can be."""
    name, found = work.item.file.name, work.found
    earlier = found.go_on.names if found.go_on is not None else ()
    names = [it for it in dict.fromkeys((*earlier, *found.told_as)) if it != name]
    names.append(name)
    try:
        steps = steps_of(work.item.file.path, found.look.size)
    except OSError:
        steps = ()  # It is gone, and what was read of it will not count.
    progress = Progress(work.path, tuple(names), found.look, steps)
    end = outcomes[-1].last_entry
    if end is None or log.ungrouped:
        return progress
    part = folded(parts[:-1])
    known = merged([part, parts[-1]]).known[0]
    last = None
    if outcomes[-1].count:
        piece = log.pieces[-1]
        last = settled(staged(piece.rows), piece.known, name)
    return replace(progress, end=end, part=part, known=known, last=last)


def event_of(row: Mapping[str, Any]) -> Event:
    """The reverse of what a task writes."""
    event: Event = decode(
        "event",
        {
            "kind": row["kind"],
            "at": instant(row["at"]),
            "source": f"{row['source']}:{row['line']}",
            "text": row["text"],
            **{name: row[name] for name in FACTS},
            "reason": row["reason"] or "",
            "details": dict(row["details"] or ()),
        },
    )
    return event
