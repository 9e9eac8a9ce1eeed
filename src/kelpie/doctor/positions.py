"""Where a group stands in a partition: since when, how far behind, how fast. Arithmetic only, no judgement.

A `Track` holds the positions of a group in one partition (commits from the offsets topic, and what surveys
saw) beside the ends of the log over time. All that it says is proven by the rows; what they do not prove is
None.

- Lag counts up to what the group can read for sure. A position behind the last stable offset shows a reader
  of uncommitted records; for any other the log ends at the last stable offset.
- Ends and positions are never looked at in the same moment, so a negative lag is none. Nor does a lag of one
  record prove anything (`NOISE`): a transaction's marker is an offset that nobody reads.
- "Unread since" needs no threshold on lag: it is the first moment from which on the rows prove that there was
  something to read and that the position did not move.
- Patience comes from the rhythm of the member that holds the partition: how often it commits.
  Forty members that commit every five seconds each make eight commits a second together: the rhythm of the
  group as a whole says nothing about one of them. A pause in which the group was found ill is no rhythm.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise, takewhile
from typing import NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import LogEnds
from kelpie.observations.positions import NO_OFFSET

NOISE = 1
"""A lag of so many records proves nothing."""
AUTO_COMMIT_MS = 5_000
"""The default of all clients (auto.commit.interval.ms)."""
MISSED = 3
"""So many commits must be missing before silence means something."""
SURE_MS = 60_000
"""A shorter silence may be a large batch or a restart, and gets a lower severity."""
LEAST_PATIENCE_MS = 2_000
STANDSTILL_MS = 15_000
"""A leader or a coordinator that moves makes healthy groups stand still for some seconds."""
UNKNOWN_RHYTHM_MS = 120_000
"""A member with fewer than three commits may belong to Kafka Connect, which commits once a minute by default
(offset.flush.interval.ms), or to Kafka Streams (30 s).
"""
POLL_INTERVAL_MS = 300_000
"""As long as a consumer may work between two polls, unless set otherwise (max.poll.interval.ms). One that
commits after each poll commits within that time, or is no member any more.
"""
CLOCKS_APART_MS = 60_000
"""The clocks of brokers and of the surveying machine differ by less than that."""
_MOST_GAPS_OF_TEN = 0.9


class Point(NamedTuple):
    """The position at a time: committed then, or seen then by a survey."""

    at: Instant
    offset: int
    is_commit: bool = True
    leader_epoch: int = -1
    source: str = ""


def readable_end(offset: int, end: LogEnds) -> int:
    """How far a group at this offset can read; NO_OFFSET if unknown."""
    if NO_OFFSET in (end.stable, end.latest):
        return end.latest
    return end.latest if offset > end.stable else end.stable


def lag(offset: int, end: LogEnds | None) -> int | None:
    """Records left to read, never negative."""
    if end is None or offset == NO_OFFSET:
        return None
    upto = readable_end(offset, end)
    if upto == NO_OFFSET:
        return None
    return upto - offset if upto > offset else 0


class Track(NamedTuple):
    """One group in one partition. Points and ends are ordered by time; points begin at the last removal."""

    name: TopicPartition
    offset: int
    """Its position; NO_OFFSET: nothing is committed, or it is unknown."""
    points: tuple[Point, ...]
    ends: tuple[LogEnds, ...]
    """Those with the end of the log."""
    now: Instant

    @property
    def end(self) -> LogEnds | None:
        return self.ends[-1] if self.ends else None

    @property
    def lag(self) -> int | None:
        return lag(self.offset, self.end)

    @property
    def is_behind(self) -> bool | None:
        """Whether there is something to read beyond doubt."""
        left = self.lag
        return None if left is None else left > NOISE

    @property
    def standing(self) -> tuple[Point, ...]:
        """The points since it last moved: repeated commits of the same offset, or surveys."""
        run = takewhile(lambda point: point.offset == self.offset, reversed(self.points))
        return tuple(run)[::-1]

    @property
    def standing_since(self) -> Instant | None:
        """It has not moved since then, or longer. None: no row has a time."""
        run = self.standing
        return run[0].at if run else None

    @property
    def seen_to_stand_ms(self) -> int:
        """How long the rows themselves prove that it did not move: between the first and the last of them."""
        run = self.standing
        return run[-1].at - run[0].at if run else 0

    @property
    def unread_since(self) -> Instant | None:
        """From then on at least there was something to read, and nothing moved. None: that is not proven."""
        since = self.standing_since
        if since is None or not self.is_behind:
            return None
        known = [end.at for end in self.ends if end.at is not None and (lag(self.offset, end) or 0) > NOISE]
        newest = self.end
        if newest is not None and newest.last_written is not None:
            known.append(newest.last_written)  # All that is unread was written by then.
        return max(min(known), since) if known else None

    @property
    def read_at(self) -> Instant | None:
        """When it moved last, if the rows show a move."""
        for before, after in pairwise(reversed(self.points)):
            if before.offset > after.offset:
                return before.at
        return None

    def offset_at(self, moment: Instant) -> int | None:
        """Where it stood, as the newest row of that time or before it says."""
        at = bisect_right(self.points, moment, key=lambda point: point.at)
        return self.points[at - 1].offset if at else None


# Rhythm.


class IllPeriod(NamedTuple):
    """An earlier examination found that the group did not consume."""

    began: Instant
    seen: Instant
    """When it was last found so."""
    code: str = ""
    """Of the finding."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a member, or a group, commits, whatever it commits."""

    times: tuple[Instant, ...]
    gaps: tuple[int, ...]
    """Between two commits, without those in which the group was found ill, or in which something changed."""

    @classmethod
    def of(
        cls, times: Iterable[Instant], ill: Sequence["IllPeriod"] = (), changes: Sequence[Instant] = ()
    ) -> "Rhythm":
        known = tuple(sorted(set(times)))
        gaps = (
            later - earlier
            for earlier, later in pairwise(known)
            if not any(period.began < later and earlier < period.seen for period in ill)
            and bisect_left(changes, earlier) == bisect_right(changes, later)
        )
        return cls(known, tuple(gaps))

    @property
    def last(self) -> Instant | None:
        return self.times[-1] if self.times else None

    @property
    def is_known(self) -> bool:
        return len(self.gaps) >= MISSED - 1

    @property
    def usual_ms(self) -> int:
        """Nine gaps of ten are not longer. With too few gaps: the default of all clients."""
        if not self.is_known:
            return AUTO_COMMIT_MS
        ordered = sorted(self.gaps)
        return ordered[min(int(len(ordered) * _MOST_GAPS_OF_TEN), len(ordered) - 1)]

    @property
    def patience_ms(self) -> int:
        """Silence for longer than this is not usual."""
        return max(MISSED * self.usual_ms, LEAST_PATIENCE_MS)

    def pauses_of(self, ms: int) -> int:
        """How often it has been silent for so long, and went on."""
        return sum(gap >= ms for gap in self.gaps)


# Progress.


class PositionProgress(Enum):
    """Whether a group makes progress in a partition, by its own rhythm."""

    READ_ALL = auto()
    """There is nothing to read beyond doubt."""
    MOVES = auto()
    WAITS = auto()
    """There is something to read, but not for long enough to mean anything."""
    NONE = auto()
    """Something has been waiting for longer than the group usually takes, and nothing moved."""
    UNKNOWN = auto()
    NO_ENDS = auto()


def progress_of(track: Track, patience_ms: int) -> PositionProgress:
    if track.is_behind is None:
        return PositionProgress.NO_ENDS
    if not track.is_behind:
        return PositionProgress.READ_ALL
    since = track.unread_since
    if since is not None and track.now - since >= patience_ms:
        return PositionProgress.NONE
    recently = track.now - patience_ms
    if track.read_at is not None and track.read_at > recently:
        return PositionProgress.MOVES
    read_all_at = _last_read_all(track)
    if read_all_at is not None and read_all_at > recently:
        return PositionProgress.WAITS
    return PositionProgress.UNKNOWN


def _last_read_all(track: Track) -> Instant | None:
    """The last time at which the rows show that nothing was left to read."""
    since = track.standing_since
    if since is None:
        return None
    ends = [end for end in track.ends if end.at is not None and end.at >= since]
    return next((end.at for end in reversed(ends) if (lag(track.offset, end) or 0) <= NOISE), None)


# Rates and time.


def rate(points: Sequence[tuple[Instant, int]]) -> float | None:
    """Offsets a millisecond from the first to the last. None: no time has passed."""
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return None
    (begin, first), (finish, last) = points[0], points[-1]
    return (last - first) / (finish - begin)


class Written(NamedTuple):
    """When a record was written: the earliest and latest possible time, and an estimate in between."""

    after: Instant | None
    before: Instant | None
    about: Instant | None


def written(offset: int, ends: Sequence[LogEnds]) -> Written:
    """When the record at this offset was written, by the ends of the log over time."""
    last = next((end for end in reversed(ends) if end.latest <= offset and end.at is not None), None)
    after = last.at if last is not None else None
    since = -1 if after is None else after
    later = (end for end in ends if end.latest > offset and end.at is not None and end.at >= since)
    first = next(later, None)
    before = first.at if first is not None else None
    if last is None or first is None or after is None or before is None:
        return Written(after, before, None)
    share = (offset - last.latest) / (first.latest - last.latest)
    return Written(after, before, round(after + share * (before - after)))


def lag_ms(track: Track, left: int | None = None) -> tuple[int, bool] | None:
    """How old the next record to read is, and whether it may be older than that. None: unknown.

    `left`: its lag, where the caller has computed it.
    """
    left = track.lag if left is None else left
    if left is None:
        return None
    if left == 0:
        return 0, False
    when = written(track.offset, track.ends)
    if when.about is not None:
        return track.now - when.about, False
    newest = track.end
    known = [when.before] if when.before is not None else []
    if newest is not None and newest.last_written is not None:
        known.append(newest.last_written)
    return (max(0, track.now - min(known)), True) if known else None


def keeps_up(track: Track, within_ms: int) -> bool:
    """Whether it has read all but what came in so lately. With a backlog, a member may be busy for long."""
    if track.is_behind is False:
        return True
    age = lag_ms(track)
    return age is not None and age[0] < within_ms and not age[1]
