"""Log segments of the offsets topic, from the disks of brokers, also dead ones, into bronze tables.

The driver decides what is new (`files`). A task decodes files in compiled code, writes Parquet files itself
and returns their names (`task`); no record crosses to the JVM. The driver writes the batch into the journal
and adds the files to the tables, one commit each.

The journal also says how far each file was read. A file that has grown is read from there on. One that was
replaced is read again, and old rows go where the new file contradicts them (`replaced`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.evidence.segments import Segment, describe_segment
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.sources.segments import replaced
from kelpie.pipeline.sources.segments.files import (
    FILLED,
    TASK_BYTES,
    ReadFile,
    SegmentFile,
    SegmentProgress,
    SegmentTaskResult,
    packed,
    progress_of,
    what_is_new,
)
from kelpie.pipeline.spark.cluster import is_readable, unseen
from kelpie.pipeline.spark.tasks import run_tasks
from kelpie.pipeline.storage.journal import Journal, Page
from kelpie.pipeline.storage.lake import Lake
from kelpie.places import Place, place_of

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
    """Files of which a part was new."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """By table."""
    progress: Mapping[str, SegmentProgress] = field(default_factory=dict)
    """How far each file has been read, by its key; also files of earlier batches."""


Runner = Callable[[Sequence[Sequence[SegmentFile]], Mapping[str, str]], Iterable[SegmentTaskResult]]
"""Runs tasks: the result of each, in the same order. It also gets the folders of the tables, by name."""


def on_spark(context: "SparkContext") -> Runner:
    """Plain tasks, for planning a query takes longer than a small input."""

    def run(
        tasks: Sequence[Sequence[SegmentFile]], folders: Mapping[str, str]
    ) -> Iterable[SegmentTaskResult]:
        def task(files: Sequence[SegmentFile]) -> SegmentTaskResult:
            from kelpie.pipeline.sources.segments.task import write  # noqa: PLC0415 - see there.

            return write(files, folders)

        size = sum(file.size - file.start for files in tasks for file in files)
        return run_tasks(context, task, tasks, size=size)

    return run


def described(items: Iterable[Item], disks: Mapping[str, int]) -> list[tuple[Item, Segment]]:
    """What the paths of segments say. `disks`: brokers by folder."""
    return [(item, describe_segment(item.file, disks)) for item in items]


def of_offsets_topic(segments: Iterable[tuple[Item, Segment]], cluster: str) -> list[SegmentFile]:
    """The files that belong to a known partition of the offsets topic."""
    return [
        SegmentFile(
            str(item.file.path),
            cluster,
            segment.partition,
            segment.broker,
            item.file.size,
            item.file.name,
            item.path,
        )
        for item, segment in segments
        if segment.topic == OFFSETS_TOPIC and segment.partition >= 0
    ]


def take_in(
    lake: Lake, files: Sequence[SegmentFile], run: Runner, *, cores: int, application: str, version: int
) -> Ingested:
    """Reads what is new in these files, as one batch; a second call with the same number adds nothing.

    `files`: those that are new or have changed, whatever has changed about them. `cores`: how many tasks run
    at a time. Raises Conflict, and
    ClusterFault where executors do not see what the driver sees.
    """
    for table in FILLED:
        lake.open(table)
    journal = Journal(lake, application)
    page = journal.finish()
    before = _progress_in(page)
    todo: list[SegmentFile] = []
    if page is None or page.number < version:
        todo = list(what_is_new(files, before))
    if todo:
        size = sum(file.size - file.start for file in todo)
        task_bytes = min(TASK_BYTES, max(_SMALLEST_TASK, size // (cores * _TASKS_PER_CORE)))
        results = _run(lake, run, packed(todo, task_bytes))
        progress = _kept(before) | _new_progress(results, before)
        page = journal.record(
            version,
            {
                table.name: [file for result in results for file in result.files[table.name]]
                for table in FILLED
            },
            {key: asdict(of_file) for key, of_file in progress.items()},
            replaced.void(lake, todo, before, results),
        )
        journal.finish()
    rows = page.rows if page is not None and page.number == version else {}
    return Ingested(len(todo), rows, _progress_in(page))


def _run(lake: Lake, run: Runner, tasks: Sequence[Sequence[SegmentFile]]) -> list[SegmentTaskResult]:
    """The results of all tasks. Raises ClusterFault.

    A file may be gone on all machines, as when a broker deletes it: then the tables say so. If this machine
    sees it, the executor may lack the file system, and another one may have it.
    """
    folders = {table.name: str(lake.path(table)) for table in FILLED}
    results = list(run(tasks, folders))
    for _ in range(_TRIES):
        unread = [place for place, result in enumerate(results) if _unread_here(result) is not None]
        if not unread:
            return results
        for place in unread:
            for table in FILLED:
                lake.discard(table, results[place].files[table.name])
        again = run([tasks[place] for place in unread], folders)
        for place, result in zip(unread, again, strict=True):
            results[place] = result
    for result in results:
        if (read := _unread_here(result)) is not None:
            raise unseen(read.file.path, read.error)
    return results


def _unread_here(result: SegmentTaskResult) -> ReadFile | None:
    """A file that the task could not read and this machine can."""
    return next((read for read in result.read if read.error and is_readable(read.file.path)), None)


def _new_progress(
    results: Sequence[SegmentTaskResult], before: Mapping[str, SegmentProgress]
) -> dict[str, SegmentProgress]:
    progress = {}
    for read in (read for result in results for read in result.read):
        if read.error:
            continue  # The progress of earlier batches stays: the rest comes when the file can be read.
        try:
            progress[read.file.key] = progress_of(read, before.get(read.file.key))
        except OSError:
            continue  # Gone: if it comes back, it is read from its beginning.
    return progress


def _progress_in(page: Page | None) -> dict[str, SegmentProgress]:
    if page is None:
        return {}
    return {key: SegmentProgress(**fields) for key, fields in page.progress.items()}


def _kept(before: Mapping[str, SegmentProgress]) -> dict[str, SegmentProgress]:
    """Earlier progress, but for files that a broker has deleted."""
    places = {path: place_of(path) for path in before}
    remote = {place.parent for place in places.values() if not isinstance(place, Path)}
    # A store is asked once for each folder, and not for each file.
    listed = {folder: set(folder.iterdir()) for folder in remote}

    def is_deleted(place: Place) -> bool:
        if isinstance(place, Path):
            return not place.exists() and place.parent.exists()
        return bool(listed[place.parent]) and place not in listed[place.parent]

    return {path: progress for path, progress in before.items() if not is_deleted(places[path])}
