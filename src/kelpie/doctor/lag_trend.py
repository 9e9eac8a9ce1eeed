"""How a group's lag in a partition changes over a while: rates in and out, from ends and positions.

A `LagTrend` covers the looks of the last hours at which both the end of the log and the position are known.
Shorter spans than `LEAST_MS` are those of a burst or of a pause, and give none. A group that reads in bursts
works its lag off again and again: in between the lag grows, and only since it fell last.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from kelpie.doctor.positions import NOISE, Track, rate
from kelpie.model.time import Instant

LEAST_MS = 10 * 60_000
LONGEST_MS = 6 * 3_600_000
"""Rates of yesterday say nothing about today."""
_LEAST_LOOKS = 3
_STEADY = 2 / 3
"""Of the steps from look to look, so many show no falling lag."""
_WORKED_OFF = 0.7
"""Of an earlier lag: one that fell to that was worked off, at least in part. The store keeps few of the looks
of an hour: the look at which a group that reads in bursts had caught up is seldom among them.
"""
_COMPARABLE = 0.5
"""Of the lag now: an earlier lag that is smaller says nothing about it."""
_CLEARLY = 1.05


class LagTrend(NamedTuple):
    """Rates are offsets a millisecond."""

    track: Track
    since: Instant
    writes: float
    reads: float
    lags: tuple[int, ...]
    """At each look, by time."""
    worked_off: int = 0
    """The largest earlier lag of which it worked much off."""
    fell_at: Instant | None = None
    """When it had last done so."""

    @property
    def grows_since(self) -> Instant:
        """Of one that grows."""
        return max(self.since, self.fell_at or 0)

    @property
    def lasted_ms(self) -> int:
        return self.track.now - self.since

    @property
    def behind_ms(self) -> float:
        """How long producers need to write what waits, at the present rate."""
        return self.lags[-1] / self.writes if self.writes > 0 else 0.0

    @property
    def grows(self) -> bool:
        """It reads, but more slowly than producers write, from look to look."""
        if self.reads <= 0 or self.writes < _CLEARLY * self.reads:
            return False
        if self.lags[-1] <= self.worked_off or self.track.now - self.grows_since < LEAST_MS:
            return False  # It reads in bursts: so much it has worked off before.
        return grows_steadily(self.lags)

    @property
    def shrinks(self) -> bool:
        """It reads faster than producers write, from look to look."""
        steps = [later <= earlier for earlier, later in pairwise(self.lags)]
        is_steady = sum(steps) >= _STEADY * len(steps)
        return self.reads > _CLEARLY * self.writes and self.lags[-1] < self.lags[0] and is_steady

    @property
    def caught_up_in_ms(self) -> float:
        """Of one that shrinks."""
        return self.lags[-1] / (self.reads - self.writes)


def lag_trend(track: Track) -> LagTrend | None:
    """None: not known over a long enough time."""
    end = track.end
    if end is None or end.at is None or not track.points or track.offset < 0:
        return None
    first = max(track.points[0].at, track.now - LONGEST_MS)
    ends = [(row.at, row.latest) for row in track.ends if row.at is not None and row.at >= first]
    if len(ends) < 2 or ends[-1][0] - ends[0][0] < LEAST_MS:
        return None
    since = ends[0][0]
    stood = [(at, latest, track.offset_at(at)) for at, latest in ends]
    begin = stood[0][2]
    writes = rate(ends)
    reads = rate([(since, begin), (track.now, track.offset)]) if begin is not None else None
    if writes is None or reads is None:
        return None
    known = [(at, max(0, latest - offset)) for at, latest, offset in stood if offset is not None]
    lags = tuple(lag for _, lag in known)
    return LagTrend(track, since, max(0.0, writes), max(0.0, reads), lags, *_worked_off(known))


def _worked_off(lags: Sequence[tuple[Instant, int]]) -> tuple[int, Instant | None]:
    """The largest lag that fell, and when one fell last; lags that are small against that of now aside."""
    least = max(NOISE + 1, _COMPARABLE * lags[-1][1])
    high, largest, at = 0, 0, None
    for when, lag in lags[:-1]:
        if high >= least and lag <= _WORKED_OFF * high:
            high, largest, at = lag, max(largest, high), when
        high = max(high, lag)
    return largest, at


def grows_steadily(lags: Sequence[int]) -> bool:
    """Whether the lag grows from look to look; one dip among them does not count."""
    if len(lags) < _LEAST_LOOKS or lags[-1] <= lags[0]:
        return False
    steps = [later >= earlier for earlier, later in pairwise(lags)]
    return sum(steps) >= _STEADY * len(steps)


def per_second(rates: Iterable[float]) -> str:
    """Of rates a millisecond, together."""
    return f"{sum(rates) * 1000:,.3g} records a second"
