"""Log segments of the offsets topic, off the disks of brokers, also dead ones, into bronze tables.

The driver plans (`files`). A task decodes ranges of files in compiled code, writes Parquet files
itself, and tells the driver which (`task`); nothing of the data crosses to the JVM. The driver
writes the batch into the journal, and adds the files to the tables, one commit each.

A big file is cut anywhere, and a task finds the first entry behind the cut by itself. The driver looks
whether that is where the range before has ended. If not (an entry may be broken there, or hold what looks
like an entry), the range is read again, from where it should have begun.

The journal also says how far each file was read. One that has grown goes on there; one that has become
another is read anew, and rows of the old one go where the new one says otherwise (`replaced`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kelpie.pipeline.sources.segments import replaced
from kelpie.pipeline.sources.segments.files import (
    FILLED,
    RANGE_BYTES,
    Done,
    Outcome,
    Progress,
    Range,
    SegmentFile,
    packed,
    progress_of,
    ranges,
    what_is_new,
)
from kelpie.pipeline.spark.cluster import is_readable, unseen
from kelpie.pipeline.storage.journal import Journal, Page
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import NewFile

if TYPE_CHECKING:
    from pyspark import SparkContext

_SMALLEST_TASK = 16 * 1024 * 1024
_TASKS_PER_CORE = 4
_TRIES = 3
"""For a file that a task does not see and the driver does."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a batch added."""

    files: int = 0
    """How many had something new."""
    bytes: int = 0
    """How much of them was new."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """By table."""
    progress: Mapping[str, Progress] = field(default_factory=dict)
    """By what a file is known by, how far it has been read: those of earlier batches, too."""


class Runner(Protocol):
    """Runs tasks somewhere."""

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""

    def __call__(self, tasks: Sequence[Sequence[Range]], folders: Mapping[str, str]) -> Iterable[Outcome]:
        """The outcome of each task, in the same order. Tasks are lists of ranges; folders are by table."""


@dataclass(frozen=True, slots=True)
class OnSpark:
    """Tasks on Spark's executors: plain tasks, for planning a query takes longer than a small input."""

    context: "SparkContext"

    @property
    def cores(self) -> int:
        return self.context.defaultParallelism

    def __call__(self, tasks: Sequence[Sequence[Range]], folders: Mapping[str, str]) -> Iterable[Outcome]:
        def task(parts: Sequence[Range]) -> Outcome:
            from kelpie.pipeline.sources.segments.task import write  # noqa: PLC0415 - not in the driver.

            return write(parts, folders)

        return self.context.parallelize(tasks, len(tasks)).map(task).collect()


def take_in(
    lake: Lake, files: Sequence[SegmentFile], run: Runner, *, application: str, version: int
) -> Ingested:
    """Read what is new in these files, as one batch; only once, whoever calls again with that number.

    `files`: those that are new or have changed, whatever has changed about them. Raises Conflict, and
    ClusterFault where executors do not see what the driver sees.
    """
    journal = Journal(_made(lake), application)
    page = journal.finish()
    before = _progress_in(page)
    todo: list[tuple[SegmentFile, int]] = []
    if page is None or page.number < version:
        todo = list(what_is_new(files, before))
    if todo:
        outcomes = _read(lake, run, todo)
        done = _by_path(outcomes)
        progress = _kept(before) | _progress(todo, done, before)
        page = journal.record(
            version,
            _files(outcomes),
            {key: asdict(it) for key, it in progress.items()},
            replaced.void(lake, todo, before, outcomes),
        )
        journal.finish()
    rows = page.rows if page is not None and page.number == version else {}
    return Ingested(len(todo), sum(file.size - start for file, start in todo), rows, _progress_in(page))


def _made(lake: Lake) -> Lake:
    for table in FILLED:
        lake.open(table)
    return lake


def _read(lake: Lake, run: Runner, todo: Sequence[tuple[SegmentFile, int]]) -> list[Outcome]:
    size = sum(file.size - start for file, start in todo)
    at_once = min(RANGE_BYTES, max(_SMALLEST_TASK, size // (run.cores * _TASKS_PER_CORE)))
    tasks = packed(ranges(todo, at_once), at_once)
    return _seamless(lake, run, tasks) if tasks else []


def _files(outcomes: Sequence[Outcome]) -> dict[str, list[NewFile]]:
    return {table.name: [file for it in outcomes for file in it.files[table.name]] for table in FILLED}


def _seamless(lake: Lake, run: Runner, tasks: Sequence[Sequence[Range]]) -> list[Outcome]:
    """All tasks done, and every range begun where the one before it has ended."""
    outcomes = _seen(lake, run, tasks)
    while wrong := _misread(outcomes):
        for place in wrong:
            _discard(lake, outcomes[place])
        again = _seen(lake, run, [[part] for part in wrong.values()])
        for place, outcome in zip(wrong, again, strict=True):
            outcomes[place] = outcome
    return outcomes


def _seen(lake: Lake, run: Runner, tasks: Sequence[Sequence[Range]]) -> list[Outcome]:
    """All tasks done, and no file passed by that is there. Raises ClusterFault.

    A file may be gone for all, as when a broker deletes it: that is told in the tables. If this machine sees
    it, whoever did not may be an executor that lacks the file system; another one may have it.
    """
    folders = {table.name: str(lake.path(table)) for table in FILLED}
    outcomes = list(run(tasks, folders))
    for _ in range(_TRIES):
        missed = {place: part for place, it in enumerate(outcomes) if (part := _passed_by(it)) is not None}
        if not missed:
            return outcomes
        for place in missed:
            _discard(lake, outcomes[place])
        again = run([tasks[place] for place in missed], folders)
        for place, outcome in zip(missed, again, strict=True):
            outcomes[place] = outcome
    part = next((part for it in outcomes if (part := _passed_by(it)) is not None), None)
    if part is None:
        return outcomes
    raise unseen(part.part.path, part.error)


def _passed_by(outcome: Outcome) -> Done | None:
    return next((it for it in outcome.done if it.error and is_readable(it.part.path)), None)


def _discard(lake: Lake, outcome: Outcome) -> None:
    for table in FILLED:
        lake.discard(table, outcome.files[table.name])


def _misread(outcomes: Sequence[Outcome]) -> dict[int, Range]:
    """Of each file the first range that did not begin where it should have; by the number of its task."""
    wrong: dict[int, Range] = {}
    path, end = "", 0
    for place, outcome in enumerate(outcomes):
        for done in outcome.done:
            part = done.part
            if part.path != path:
                path, end = part.path, part.start
            elif (
                part.cut
                and done.first != min(end, part.stop)
                and path not in {it.path for it in wrong.values()}
            ):
                wrong[place] = part._replace(start=min(end, part.stop), cut=False)
            end = max(end, done.end)
    return wrong


def _by_path(outcomes: Sequence[Outcome]) -> dict[str, list[Done]]:
    found: dict[str, list[Done]] = {}
    for outcome in outcomes:
        for done in outcome.done:
            found.setdefault(done.part.path, []).append(done)
    return found


def _progress(
    todo: Sequence[tuple[SegmentFile, int]],
    done: Mapping[str, Sequence[Done]],
    before: Mapping[str, Progress],
) -> dict[str, Progress]:
    found = {}
    for file, _ in todo:
        parts = done.get(file.path, ())
        if not parts or any(part.error for part in parts):
            continue  # As far as it was read before, if it was: the rest comes when it can be read.
        try:
            found[file.key] = progress_of(file.path, parts, before.get(file.key))
        except OSError:
            continue  # Gone: if it comes back, it is read anew.
    return found


def _progress_in(page: Page | None) -> dict[str, Progress]:
    return {} if page is None else {key: Progress(**it) for key, it in page.progress.items()}


def _kept(before: Mapping[str, Progress]) -> dict[str, Progress]:
    """What was read before, but for files that a broker has deleted."""
    return {path: it for path, it in before.items() if Path(path).exists() or not Path(path).parent.exists()}
