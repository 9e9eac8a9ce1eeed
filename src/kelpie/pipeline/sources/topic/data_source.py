"""The offsets topic as a data source of Spark, over Kelpie's own client: for Kafka 0.9 and broken clusters.

Spark's own Kafka source needs Kafka 0.10 or later and a leader for every partition. This one skips partitions
that cannot be read now, and continues them when they are back. It writes offsets as Spark's source does, so
that a stream can continue with the other one.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kelpie.client.client_errors import ClientError
from kelpie.client.properties import read_settings, settings_of
from kelpie.client.settings import Settings
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.sources.topic.ends import TopicEnds, ask_topic_ends
from kelpie.pipeline.sources.topic.rows import RAW, FetchRange, raw_rows, reason_row, source_of

NAME = "kelpie_offsets_topic"
STARTING, MOST, TASKS = "startingOffsets", "maxOffsetsPerTrigger", "tasks"
PROPERTIES_FILE = "propertiesFile"
"""Of a Kafka client, on a path that tasks see, too. Of other options for the client only addresses count."""
_KAFKA = "kafka."
_MOST_OF_A_TASK, _LEAST_OF_A_TASK = 1_000_000, 50_000
"""Offsets."""
_FROM_THE_END = -1
"""The start in a partition whose end is not known yet: behind its last record when that can be asked."""

_log = logging.getLogger(__name__)

Offsets = dict[str, dict[str, int]]


class OffsetsTopic(DataSource):
    """Options: kafka.bootstrap.servers, others of a Kafka client, and those of Spark's source named above."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(RAW, prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's words.
        return _Reader(_Options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return _StreamReader(_Options(self.options))


class _Options:
    """What the source was given. Spark pickles it for tasks, and shows it in plans.

    So it has the name of the file of client properties, if there is one, and not what the file holds: a task
    reads the file again.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._properties = {
            name.removeprefix(_KAFKA): value for name, value in given.items() if name.startswith(_KAFKA)
        }
        self._file = given.get(PROPERTIES_FILE)
        self.bootstrap: str = self._properties["bootstrap.servers"]
        self.starting: str = given.get(STARTING) or "earliest"
        self.most = int(given.get(MOST) or 0)
        self.tasks = int(given.get(TASKS) or 1)

    @property
    def settings(self) -> Settings:
        """Raises BadSettings."""
        if self._file is None:
            return settings_of(self._properties)
        return read_settings(self._file, self.bootstrap)


class _Part(InputPartition):
    """What one task reads. `missing`: why other partitions are not read, by partition."""

    def __init__(
        self,
        ranges: Sequence[FetchRange],
        tells_versions: bool | None,
        missing: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(None)
        self.ranges, self.tells_versions, self.missing = ranges, tells_versions, dict(missing)


def _read(options: _Options, part: InputPartition) -> Iterator[pa.RecordBatch]:
    """In a worker."""
    if not isinstance(part, _Part):  # Spark passes its own object when nothing was planned.
        return
    for partition, reason in part.missing.items():
        words = f"{OFFSETS_TOPIC}-{partition} was not read: {reason}"
        yield reason_row(partition, source_of(partition, options.bootstrap), 0, words)
    if not part.ranges:
        return
    from kelpie.pipeline.sources.topic.fetch import read_range  # noqa: PLC0415 - not in the driver.

    settings = options.settings
    for offset_range in part.ranges:
        source = source_of(offset_range.partition, options.bootstrap)
        for pairs, unread in read_range(settings, offset_range, tells_versions=part.tells_versions):
            yield from raw_rows(offset_range.partition, source, pairs)
            for gap in unread:
                yield reason_row(offset_range.partition, source, gap.position, gap.reason, gap.head)


def _packed(ranges: Sequence[FetchRange], tasks: int) -> Iterator[list[FetchRange]]:
    """As many tasks as run at a time; more for many offsets, fewer for few."""
    total = sum(offset_range.stop - offset_range.start for offset_range in ranges)
    at_once = min(_MOST_OF_A_TASK, max(_LEAST_OF_A_TASK, -(-total // max(tasks, 1))))
    room, task = at_once, list[FetchRange]()
    for partition, start, stop in ranges:
        begin = start
        while begin < stop:
            end = min(stop, begin + room)
            task.append(FetchRange(partition, begin, end))
            room -= end - begin
            begin = end
            if not room:
                yield task
                room, task = at_once, []
    if task:
        yield task


class _Reader(DataSourceReader):
    """A batch: all records that there are now."""

    def __init__(self, options: _Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        topic_ends = ask_topic_ends(self._options.settings)
        given = _given(self._options.starting)
        ranges = []
        for partition, (first, last) in sorted(topic_ends.ends.items()):
            start = last if self._options.starting == "latest" else max(first, given.get(partition, 0))
            ranges.append(FetchRange(partition, start, last))
        parts = [_Part(some, topic_ends.tells_versions) for some in _packed(ranges, self._options.tasks)]
        return [*parts, _Part((), None, topic_ends.missing)] if topic_ends.missing else parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream. Logs each partition that it skips, and each that is back."""

    def __init__(self, options: _Options) -> None:
        self._options = options
        self._tells_versions: bool | None = None
        self._target: dict[int, int] | None = None
        self._missing: dict[int, str] = {}

    # Methods that Spark calls.

    def initialOffset(self) -> Offsets:  # noqa: N802
        topic_ends = self._topic_ends()
        given = _given(self._options.starting)
        start = dict.fromkeys((*topic_ends.ends, *topic_ends.missing), 0)
        if self._options.starting == "latest":
            start = {
                partition: topic_ends.ends[partition][1] if partition in topic_ends.ends else _FROM_THE_END
                for partition in start
            }
        return _as_json(
            start | {partition: offset for partition, offset in given.items() if partition in start}
        )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.most) if self._options.most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = {partition: last for partition, (_, last) in self._topic_ends().ends.items()}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        began = _by_partition(start)
        try:
            topic_ends = self._topic_ends()
        except ClientError as error:
            self._log_changes({-1: error.reason})
            return start
        ends = {partition: last for partition, (_, last) in topic_ends.ends.items()}
        if self._target is not None:
            ends = {
                partition: min(last, self._target[partition])
                for partition, last in ends.items()
                if partition in self._target
            }
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        begins = {
            partition: max(began.get(partition, 0), topic_ends.ends[partition][0]) for partition in ends
        }
        begins |= {
            partition: last for partition, last in ends.items() if began.get(partition) == _FROM_THE_END
        }
        end = began | _limited(begins, ends, most)
        return start if end == began else _as_json(end)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        began = _by_partition(start)
        ranges = []
        for partition, stop in _by_partition(end).items():
            first = began.get(partition, 0)
            if first == _FROM_THE_END:
                continue
            # A log that has become shorter is another log: all of it may be new.
            ranges.append(FetchRange(partition, first if first <= stop else 0, stop))
        return [_Part(some, self._tells_versions) for some in _packed(ranges, self._options.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, partition)

    def _topic_ends(self) -> TopicEnds:
        topic_ends = ask_topic_ends(self._options.settings, self._tells_versions)
        self._tells_versions = topic_ends.tells_versions
        self._log_changes(topic_ends.missing)
        return topic_ends

    def _log_changes(self, missing: Mapping[int, str]) -> None:
        """Logs what has changed. Partition −1: the whole topic."""
        names = {partition: f"{OFFSETS_TOPIC}-{partition}" for partition in {*missing, *self._missing}}
        names[-1] = OFFSETS_TOPIC
        for partition in missing.keys() - self._missing.keys():
            _log.warning("%s is left out until it is back: %s", names[partition], missing[partition])
        for partition in self._missing.keys() - missing.keys():
            _log.warning("%s is back.", names[partition])
        self._missing = dict(missing)


def _limited(begins: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Ends that take at most so many offsets, the same share of each partition."""
    waiting = {partition: max(0, last - begins[partition]) for partition, last in ends.items()}
    total = sum(waiting.values())
    if not most or total <= most:
        return dict(ends)
    return {
        partition: last
        if last <= begins[partition]
        else begins[partition] + max(1, waiting[partition] * most // total)
        for partition, last in ends.items()
    }


def _given(starting: str) -> dict[int, int]:
    return {} if starting in ("earliest", "latest") else _by_partition(json.loads(starting))


def _as_json(offsets: Mapping[int, int]) -> Offsets:
    return {OFFSETS_TOPIC: {str(partition): offset for partition, offset in sorted(offsets.items())}}


def _by_partition(offsets: Offsets) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.get(OFFSETS_TOPIC, {}).items()}
