"""Logs of brokers and clients into `log_event`: each range of a file is a task.

The group of a line may follow from earlier lines, some logs have only the time of day, and the ranges of a
big log are read at the same time. So there are two rounds of tasks. The first reads ranges. Then the driver
merges what they say of clients and groups (`parts`), and what all files together say: the date of a log
without one, a group that only the name of a file names. The second round completes the rows and writes them.
No row passes through the driver or the JVM.

A log that cannot be read in ranges is read in one task, line by line. A log that has grown is continued from
where it ended (`progress`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kelpie.evidence.folder import NOTHING_KNOWN
from kelpie.evidence.logs import LogReading
from kelpie.evidence.logs.attribution import group_in_name
from kelpie.evidence.logs.hints import MISFIT, NO_HINTS, Hints, LogLayout
from kelpie.model.time import Instant
from kelpie.observations import Event
from kelpie.observations.encoding import decode
from kelpie.observations.events import FACTS
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.sources.logs.identity import FileState, Seen, copies, steps_of, still_begins_so
from kelpie.pipeline.sources.logs.parts import LogTaskResult, Part, Piece, Task, Unjoinable, folded, merged
from kelpie.pipeline.sources.logs.progress import Ledger, LogProgress, ReadingPlan
from kelpie.pipeline.sources.logs.reader import can_be_split
from kelpie.pipeline.sources.logs.rows import EVENTS, rows_in, rows_of_line, settled, staged, text_of
from kelpie.pipeline.spark.tasks import run_tasks
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables.moments import instant
from kelpie.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANGE_BYTES = 32 << 20
_ROWS_A_TASK = 50_000
_BYTES_A_ROW = 300
"""About as long as a line."""
_TASKS_PER_CORE = 3
_CHANGED = "It became another file while it was read. What it is by now is read the next time."


@dataclass(slots=True)
class Log:
    """What tasks return of a log, without its events."""

    reading: LogReading
    """Without events; its `heads` and `unknown` may not count lines that mean nothing."""
    reason: str = ""
    """Why it cannot be used."""
    changed: bool = False
    """It cannot be used this time: it was moved or emptied while it was read."""
    ungrouped: bool = False
    """Whether some events have a group that nothing in the file names."""
    began: Instant | None = None
    """Its first time, before its date was known."""
    pieces: Sequence[Piece] = ()
    progress: LogProgress | None = None
    """Where to continue when it has grown."""
    replaces: Sequence[LogProgress] = ()
    """Logs whose rows are deleted before its own are added."""
    renames: LogProgress | None = None
    """The log under its old name, whose rows get the new name."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A log to be read: from where it ended, from its beginning, or as a whole if it cannot be split."""

    item: Item
    plan: ReadingPlan
    layout: LogLayout | None = None
    whole: bool = False

    def is_unchanged(self) -> bool:
        return still_begins_so(self.item.file.path, self.item.path, self.plan.state)

    def anew(self) -> "_Work":
        if self.plan.go_on is not None:
            return replace(self, plan=self.plan._replace(go_on=None))
        return replace(self, whole=True)


def read_logs(
    spark: "SparkSession",
    items: Sequence[Item],
    staging: Place,
    ledger: Ledger,
    *,
    hints: Hints = NO_HINTS,
    range_bytes: int = RANGE_BYTES,
) -> list[Log]:
    """Reads these logs. Their rows are left in the folder `staging`."""
    reading = partial(_read, spark, staging=staging, zone=hints.zone, range_bytes=range_bytes)
    works = {item.path: _Work(item, _plan(ledger, item), hints.layout_of(item.file.name)) for item in items}
    others = copies(Seen(path, work.item.file.path, work.plan.state) for path, work in works.items())
    logs = reading([work for path, work in works.items() if path not in others])
    logs |= reading(_without_rows(works[copy], logs[other], ledger) for copy, other in others.items())
    return sorted(logs.values(), key=lambda log: log.reading.name.split("/"))


def _without_rows(copy: _Work, other: Log, ledger: Ledger) -> _Work:
    """A copy needs no rows if the other file has them; if that one has changed, the copy is planned again."""
    if other.progress is None:
        return replace(copy, plan=_plan(ledger, copy.item))
    return replace(copy, plan=copy.plan._replace(rows_under=other.progress.names))


def _read(
    spark: "SparkSession",
    works: Iterable[_Work],
    *,
    staging: Place,
    zone: tzinfo | None,
    range_bytes: int,
) -> dict[str, Log]:
    """Logs by path."""
    logs: dict[str, Log] = {}
    todo = list(works)
    while todo:
        tasks = [task for work in todo for task in _tasks(work, range_bytes)]
        results: defaultdict[str, list[LogTaskResult]] = defaultdict(list)
        for result in _run(spark, tasks, staging, zone):
            results[result.task.name].append(result)
        again = []
        for work in todo:
            name = work.item.file.name
            log = _log(work, results[name])
            if log is None:
                again.append(work.anew())
            elif (log.reason and not work.plan.state.log) or work.is_unchanged():
                logs[work.item.path] = log
            else:
                logs[work.item.path] = Log(LogReading(name), _CHANGED, changed=True)
        todo = again
    return logs


def correct(logs: Sequence[Log], known: Mapping[str, str]) -> None:
    """Adds what all files together tell: dates, and groups by names of files.

    `known`: names of groups. A group that a file's name names is added to the known groups of its log.
    """
    for log in logs:
        reading = log.reading
        shift: int | None = 0
        if log.began is not None:
            shift = None if reading.first is None else reading.first - log.began
        named = None
        if log.ungrouped and not reading.observations.known_groups:
            named = group_in_name(reading.name, known)
        if named is not None:
            reading.observations.known_groups[named] = f"the name of {reading.name}"
        log.pieces = [
            replace(piece, known=replace(piece.known, shift_ms=shift, named=named)) for piece in log.pieces
        ]


def write_logs(spark: "SparkSession", logs: Sequence[Log], folder: Place, cluster: str) -> list[NewFile]:
    """Writes the rows of these logs to files in the folder of the table; no commit names them yet."""
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
        from kelpie.pipeline.sources.logs.task import write  # noqa: PLC0415 - not always in the driver.

        return write(some, str(folder), cluster)

    size = sum(piece.count for piece in pieces) * _BYTES_A_ROW
    return [file for files in run_tasks(spark.sparkContext, task, tasks, size=size) for file in files]


def change_rows(lake: Lake, cluster: str, logs: Sequence[Log]) -> None:
    """Changes rows of earlier batches: deletes those that are replaced, renames those of renamed logs."""
    for log in logs:
        for earlier in log.replaces:
            lake.delete(EVENTS, cluster, earlier.where)
        if log.renames is not None:
            lake.update(EVENTS, cluster, log.renames.where, {"source": log.reading.name})


def _plan(ledger: Ledger, item: Item) -> ReadingPlan:
    try:
        return ledger.find(item.path, item.file.path, item.file.size, item.file.name)
    except OSError:
        return ReadingPlan(FileState("", item.file.size))  # The task will say why.


def _tasks(work: _Work, range_bytes: int) -> list[Task]:
    file, go_on, size = work.item.file, work.plan.go_on, work.plan.state.size
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


def _run(
    spark: "SparkSession", tasks: Sequence[Task], staging: Place, zone: tzinfo | None
) -> list[LogTaskResult]:
    def task(range_task: Task) -> list[LogTaskResult]:
        from kelpie.pipeline.sources.logs.task import read  # noqa: PLC0415 - not always in the driver.

        return read(range_task, str(staging), zone)

    context = spark.sparkContext
    size = sum(each.ends - each.begins for each in tasks)
    slices = context.defaultParallelism * _TASKS_PER_CORE
    results = run_tasks(context, task, tasks, size=size, slices=slices)
    return [result for of_task in results for result in of_task]


def _log(work: _Work, results: Sequence[LogTaskResult]) -> Log | None:
    """None: it must be read again, from further back."""
    name, go_on = work.item.file.name, work.plan.go_on
    broken = next((result.reason for result in results if result.reason), "")
    if broken:
        return Log(LogReading(name), broken)
    parts = [result.part for result in results if result.part is not None]
    if len(parts) < len(results):
        return None
    before = [] if go_on is None or go_on.part is None else [go_on.part]
    try:
        whole = merged([*before, *parts])
    except Unjoinable:
        return None
    whole.reading.name = name
    known = whole.known[len(before) :]
    pieces = [
        Piece(name, work.plan.state.log, result.rows, result.count, part_known)
        for result, part_known in zip(results, known, strict=True)
        if result.count
    ]
    log = Log(whole.reading, ungrouped=whole.ungrouped, began=whole.reading.first, pieces=pieces)
    replaces = [work.plan.outdated]
    if go_on is None:
        replaces += [work.plan.replaces] if not work.plan.rows_under else []
        log.reason = "" if whole.reading.heads or pieces else NOTHING_KNOWN
        if work.layout is not None and not whole.reading.heads:
            log.reason = MISFIT
    elif whole.known[0] != go_on.known or not _is_as_written(go_on, log):
        return None
    elif go_on.name != name and not work.plan.rows_under:
        log.renames = go_on
    log.replaces = [earlier for earlier in replaces if earlier is not None]
    log.progress = _progress(work, results, [*before, *parts], log)
    if work.plan.rows_under:
        log.pieces = []
    return log


def _is_as_written(go_on: LogProgress, log: Log) -> bool:
    """Whether the former last entry gives the same rows as before; then these are skipped."""
    assert go_on.part is not None
    if go_on.last is None:
        return True
    place, written = go_on.part.lines + 1, rows_in(go_on.last)
    if not log.pieces:
        return False
    piece, *others = log.pieces
    if rows_of_line(settled(staged(piece.rows), piece.known, piece.source), place) != written:
        return False
    log.pieces = [replace(piece, skip=len(written["line"])), *others]
    return True


def _progress(work: _Work, results: Sequence[LogTaskResult], parts: Sequence[Part], log: Log) -> LogProgress:
    """Where to continue the log, if that is possible."""
    name, plan = work.item.file.name, work.plan
    earlier = plan.go_on.names if plan.go_on is not None else ()
    names = [other for other in dict.fromkeys((*earlier, *plan.rows_under)) if other != name]
    names.append(name)
    try:
        steps = steps_of(work.item.file.path, plan.state.size)
    except OSError:
        steps = ()  # It is gone, so what was read of it will not count.
    progress = LogProgress(work.item.path, tuple(names), plan.state, steps)
    end = results[-1].last_entry
    if end is None or log.ungrouped:
        return progress
    part = folded(parts[:-1])
    known = merged([part, parts[-1]]).known[0]
    last = None
    if results[-1].count:
        piece = log.pieces[-1]
        last = text_of(settled(staged(piece.rows), piece.known, name))
    return replace(progress, end=end, part=part, known=known, last=last)


def event_of(row: Mapping[str, Any]) -> Event:
    """The event of a row of log_event."""
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
