"""The batches of a log, in segments, as Kafka keeps them in files (LogSegment, LocalLog).

What is old leaves the log segment by segment, the cleaner takes only segments that are closed, and a read
ends with its segment. Offsets and sizes lie in sorted lists beside the batches: finding a batch is a
bisection.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping

from kelpie.broker.log.batch import ReadResult, StoredBatch
from kelpie.broker.log.config import LogConfig
from kelpie.broker.log.producers import ProducerEntry
from kelpie.model.time import Instant

_LARGEST_INT32 = 2**31 - 1


class LogSegment:
    __slots__ = (
        "base_offset",
        "batches",
        "created",
        "ends",
        "first_timestamp",
        "last_offsets",
        "max_timestamp",
        "modified",
        "snapshot",
    )

    def __init__(
        self, base_offset: int, created: Instant | None, snapshot: Mapping[int, ProducerEntry]
    ) -> None:
        self.base_offset = base_offset
        self.created = created
        """None until the first append, for a segment without a given time."""
        self.modified = created
        self.snapshot = snapshot
        """The producers as they were where the segment begins."""
        self.batches: list[StoredBatch] = []
        self.last_offsets: list[int] = []
        self.ends: list[int] = []
        """Where each batch ends, in bytes from the beginning of the segment."""
        self.max_timestamp = -1
        self.first_timestamp = -1

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def largest_timestamp(self) -> Instant:
        """Its age counts from here: the largest timestamp, or, without any, the last append."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return 0 if self.modified is None else self.modified

    def append(self, batch: StoredBatch, now: Instant) -> None:
        if not self.batches:
            self.first_timestamp = batch.max_timestamp
            if self.created is None:
                self.created = now
        self.ends.append((self.ends[-1] if self.ends else 0) + len(batch.data))
        self.batches.append(batch)
        self.last_offsets.append(batch.last_offset)
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)
        self.modified = now

    def should_roll(
        self, size: int, last_offset: int, timestamp: int, now: Instant, config: LogConfig
    ) -> bool:
        if self.size > config.segment_bytes - size:
            return True
        if self.batches:
            assert self.created is not None
            waited = timestamp - self.first_timestamp if self.first_timestamp >= 0 else now - self.created
            if waited > config.longest_segment_ms:
                return True
        return last_offset - self.base_offset > _LARGEST_INT32

    def truncate_to(self, offset: int) -> None:
        """Drop the batches that reach `offset`."""
        index = bisect_left(self.last_offsets, offset)
        del self.batches[index:], self.last_offsets[index:], self.ends[index:]
        self.max_timestamp = max((batch.max_timestamp for batch in self.batches), default=-1)
        if not self.batches:
            self.first_timestamp = -1

    @classmethod
    def cleaned(cls, of: list["LogSegment"], batches: list[StoredBatch]) -> "LogSegment":
        """One segment in place of several, with what the cleaner left of them."""
        segment = cls(of[0].base_offset, of[0].created, of[0].snapshot)
        for batch in batches:
            segment.append(batch, 0)
        segment.modified = of[-1].modified
        return segment


class Segments:
    """All segments of a log, oldest first. There always is one, the active one, at the end."""

    def __init__(self, start: int) -> None:
        self._all = [LogSegment(start, None, {})]
        self._bases = [start]

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def active(self) -> LogSegment:
        return self._all[-1]

    @property
    def first(self) -> LogSegment:
        return self._all[0]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._all)

    def roll(self, base_offset: int, now: Instant, snapshot: Mapping[int, ProducerEntry]) -> bool:
        """Begin a new segment, unless the active one is still empty."""
        if not self.active.batches:
            return False
        self._all.append(LogSegment(base_offset, now, snapshot))
        self._bases.append(base_offset)
        return True

    def reset(self, start: int) -> None:
        self._all = [LogSegment(start, None, {})]
        self._bases = [start]

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Segment and index of the first batch that reaches `offset`; None, if none does."""
        which = max(0, bisect_right(self._bases, offset) - 1)
        while which < len(self._all):
            segment = self._all[which]
            index = bisect_left(segment.last_offsets, offset)
            if index < len(segment.batches):
                return which, index
            which += 1  # Compaction may have emptied the end of a segment, or all of it.
        return None

    def at(self, which: int) -> LogSegment:
        return self._all[which]

    # Reads: a bisection finds the batch, the rest is a slice. Only references are copied.

    def read(self, offset: int, max_bytes: int, *, upto: int, at_least_one: bool, cut: bool) -> ReadResult:
        """Read from one segment, as Kafka does."""
        located = self.locate(offset) if offset < upto else None
        if located is None:
            return ReadResult(offset)
        which, first = located
        segment = self.at(which)
        ends = segment.ends
        last = bisect_left(segment.last_offsets, upto, first)
        before = ends[first - 1] if first else 0
        fit = bisect_right(ends, before + max_bytes, first, last)
        if fit == first and at_least_one and first < last:
            fit = first + 1
        tail = b""
        if cut and fit < last:
            room = before + max_bytes - (ends[fit - 1] if fit > first else before)
            tail = segment.batches[fit].data[: max(0, room)]
        return ReadResult(offset, segment.batches[first:fit], tail)

    def batches_from(self, offset: int) -> list[StoredBatch]:
        """Read across segments, for a replica that takes the batches as they are."""
        located = self.locate(offset)
        if located is None:
            return []
        which, first = located
        batches = self.at(which).batches[first:]
        for segment in self._all[which + 1 :]:
            batches += segment.batches
        return batches

    # Changes

    def truncate_to(self, offset: int) -> tuple[int, LogSegment]:
        """Drop all batches that reach `offset`, and say where the log ends now, and in which segment."""
        located = self.locate(offset)
        if located is not None:
            which, index = located
            offset = min(offset, self._all[which].batches[index].base_offset)
        while len(self._all) > 1 and self._bases[-1] > offset:
            self._all.pop()
            self._bases.pop()
        self.active.truncate_to(offset)
        return offset, self.active

    def drop_first(self, count: int) -> None:
        assert count < len(self._all), "the active segment stays"
        del self._all[:count], self._bases[:count]

    def replace(self, first: int, last: int, by: LogSegment) -> None:
        """Put one segment in the place of those from `first` up to `last`, exclusive."""
        self._all[first:last] = [by]
        self._bases[first:last] = [by.base_offset]
