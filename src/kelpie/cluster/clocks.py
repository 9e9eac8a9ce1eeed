"""How far the clocks of brokers are from the clock here, as far as rows prove it.

Ages mix two clocks: brokers stamp commits, and the clock here says what is now. A clock that is 90 s fast
makes a busy group look silent. Nothing is changed on a cluster to find out; what brokers answer is enough:

- The leader of the controllers tells its time (DescribeQuorum, KRaft since 3.3): exact to one round trip.
- A commit that was read by now was made by now: the broker's clock is ahead by at least the difference. Of a
  clock here that is slow this is proof, and a busy broker is never thought to be behind.
- An offset that a look did not see yet was committed after that look: the broker's clock is ahead by at most
  the difference between its stamp and the time of the look. Of a clock here that is fast this is proof.

So each broker has an interval. A broker is taken to be in step with the controllers unless its own commits
contradict. Where the interval excludes zero, all stamps of the broker are converted to the clock here, to the
latest time that is possible: a group is never said to be silent for longer than it is. Where nothing bounds
the interval from below, `uncertain_ms` says by how much ages may be too large.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kelpie.model.time import Instant
from kelpie.observations import ClockReading, Commit, Committed, LogEnds

IN_STEP_MS = 5_000
"""Clocks that differ by less are in step: no rule decides by seconds."""
_ROUND_TRIP_MS = 2_000
"""A question was sent at most so long before its answer came."""


class Skew(NamedTuple):
    """By how much a broker's clock is ahead of the clock here, in milliseconds: at least, and at most."""

    least: int | None = None
    most: int | None = None

    @property
    def shift(self) -> int:
        """What to take off the broker's stamps. 0: the clocks may be in step."""
        if self.least is not None and self.least > IN_STEP_MS:
            return self.least
        if self.most is not None and self.most < -IN_STEP_MS:
            return self.most if self.least is None else max(self.least, self.most - IN_STEP_MS)
        return 0

    @property
    def uncertain_ms(self) -> int:
        """By so much ages may be too large after the shift."""
        if self.least is None:
            return 0
        return max(0, self.shift - self.least) if self.shift - self.least > IN_STEP_MS else 0


IN_STEP = Skew()


def skews(
    nodes: Iterable[int],
    now: Instant,
    *,
    readings: Sequence[ClockReading],
    newest_stamps: Mapping[int, Instant],
    latest_records: Instant | None,
    committed_after: Mapping[int, Sequence[tuple[Instant, Instant]]],
) -> dict[int, Skew]:
    """By broker.

    `newest_stamps`: of commits, by the broker that stamped them. `latest_records`: the newest time of any
    record; producers set it, so it only shows that the clock here is not fast. `committed_after`: stamps of
    commits, and the time of a look that did not see them yet.
    """
    told = _told(readings)
    found = {}
    for node in nodes:
        stamp = newest_stamps.get(node)
        least = stamp - now if stamp is not None else None
        pairs = committed_after.get(node, ())
        most = min((stamp - (look - _ROUND_TRIP_MS) for stamp, look in pairs), default=None)
        if latest_records is not None and least is not None:
            least = max(least, min(0, latest_records - now))
        if most is not None and least is not None and most < least:
            most = None  # The clock was set, or another broker stamped some of them.
        own = Skew(least, most)
        found[node] = _within(own, told) if told is not None else own
    return found


def _told(readings: Sequence[ClockReading]) -> Skew | None:
    exact = [row for row in readings if row.at is not None]
    if not exact:
        return None
    row = min(exact, key=lambda row: (row.at or 0) - row.sent)
    return Skew(row.told - (row.at or 0) - IN_STEP_MS // 2, row.told - row.sent + IN_STEP_MS // 2)


def _within(own: Skew, told: Skew) -> Skew:
    """Both, if they agree; else what the broker's own commits show."""
    least = max((each for each in (own.least, told.least) if each is not None), default=None)
    most = min((each for each in (own.most, told.most) if each is not None), default=None)
    return own if least is not None and most is not None and most < least else Skew(least, most)


def commits_after_looks(
    commits: Sequence[Commit], looks: Iterable[Committed]
) -> tuple[Instant, Instant] | None:
    """The stamp of the first commit that the last look before it did not see, and the time of that look."""
    if len(commits) < 2:
        return None  # A look saw the only commit, or one that is not among them.
    for look in sorted(looks, key=lambda row: -(row.at or 0)):
        if look.at is None or look.error:
            continue
        seen = max((at for at, row in enumerate(commits) if row.offset == look.offset), default=None)
        if seen is None or seen + 1 == len(commits):
            continue
        stamp = commits[seen + 1].at
        if stamp is not None:
            return stamp, look.at
    return None


def newest_record(ends: Iterable[LogEnds], now: Instant) -> Instant | None:
    """The newest time of a record that is not in the future."""
    return max(
        (row.last_written for row in ends if row.last_written is not None and row.last_written <= now),
        default=None,
    )
