"""Log segments of the offsets topic, off the disks of brokers, also dead ones, into bronze tables.

The driver finds files, and plans (segments_files.py). A task decodes ranges of files in compiled code,
writes Parquet files itself, and tells the driver which (segments_task.py); nothing of the data crosses to
the JVM. The driver writes the batch into the journal, and adds the files to the tables, one commit each.

A big file is cut anywhere, and a task finds the first entry behind the cut by itself. The driver looks
whether that is where the range before has ended. If not (an entry may be broken there, or hold what looks
like an entry), the range is read again, from where it should have begun.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kelpie.pipeline.journal import Journal
from kelpie.pipeline.lake import Lake
from kelpie.pipeline.parquet import NewFile
from kelpie.pipeline.sources.segments_files import (
    FILLED,
    RANGE_BYTES,
    Outcome,
    Progress,
    Range,
    SegmentFile,
    find,
    packed,
    progress_of,
    ranges,
    what_is_new,
)

if TYPE_CHECKING:
    from pyspark import SparkContext

APPLICATION = "segments"
_SMALLEST_TASK = 16 * 1024 * 1024
_TASKS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a run added."""

    files: int = 0
    bytes: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    """By table."""


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
            from kelpie.pipeline.sources.segments_task import write  # noqa: PLC0415 - not in the driver.

            return write(parts, folders)

        return self.context.parallelize(tasks, len(tasks)).map(task).collect()


def ingest(lake: Lake, folders: Iterable[Path], run: Runner, *, cluster: str | None = None) -> Ingested:
    """Read what is new below these folders, as one batch, exactly once.

    `cluster`: its name; if nobody says, its id, where the disks know it. Raises SeveralClusters and Conflict.
    """
    journal = Journal(_made(lake), APPLICATION)
    page = journal.finish()
    before = {} if page is None else {path: Progress(**it) for path, it in page.progress.items()}
    todo = list(what_is_new(find(folders, cluster), before))
    if not todo:
        return Ingested()
    outcomes = _read(lake, run, todo)
    progress = {path: asdict(it) for path, it in (_kept(before) | _progress(outcomes)).items()}
    page = journal.record(0 if page is None else page.number + 1, _files(outcomes), progress)
    journal.finish()
    return Ingested(len(todo), sum(file.size - start for file, start in todo), page.rows)


def take_in(
    lake: Lake, files: Sequence[SegmentFile], run: Runner, *, application: str, version: int
) -> Ingested:
    """Read these files, whole, as a batch that somebody else has numbered; only once, whoever calls again.

    For those who know themselves which files are new. Raises Conflict.
    """
    journal = Journal(_made(lake), application)
    page = journal.finish()
    if page is None or page.number < version:
        page = journal.record(version, _files(_read(lake, run, [(file, 0) for file in files])))
        journal.finish()
    return Ingested(len(files), sum(file.size for file in files), page.rows if page.number == version else {})


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
    folders = {table.name: str(lake.path(table)) for table in FILLED}
    outcomes = list(run(tasks, folders))
    while wrong := _misread(outcomes):
        for place in wrong:
            for table in FILLED:
                lake.discard(table, outcomes[place].files[table.name])
        again = run([[part] for part in wrong.values()], folders)
        for place, outcome in zip(wrong, again, strict=True):
            outcomes[place] = outcome
    return outcomes


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


def _progress(outcomes: Sequence[Outcome]) -> dict[str, Progress]:
    ends = {done.part.path: done for outcome in outcomes for done in outcome.done}
    found = {}
    for path, done in ends.items():
        try:
            found[path] = progress_of(path, done.part.stop, min(done.end, done.torn))
        except OSError:
            continue  # Gone: if it comes back, it is read anew.
    return found


def _kept(before: Mapping[str, Progress]) -> dict[str, Progress]:
    """What was read before, but for files that a broker has deleted."""
    return {path: it for path, it in before.items() if Path(path).exists() or not Path(path).parent.exists()}
