"""How a group's lag in a partition changes over a while: rates in and out, from ends and positions.

A `LagTrend` covers the looks of the last hours at which both the end of the log and the position are known.
Shorter spans than `LEAST_MS` are those of a burst or of a pause, and give none.
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
_CAUGHT_UP = 0.2
"""Of the lag now: an earlier lag that is smaller, after a larger one, shows a group that reads in bursts."""
_CLEARLY = 1.05


class LagTrend(NamedTuple):
    """Rates are offsets a millisecond."""

    track: Track
    since: Instant
    writes: float
    reads: float
    lags: tuple[int, ...]
    """At each look, by time."""

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
        return grows_steadily(self.lags) and not self._in_bursts

    @property
    def shrinks(self) -> bool:
        return self.reads > _CLEARLY * self.writes and self.lags[-1] < self.lags[0]

    @property
    def caught_up_in_ms(self) -> float:
        """Of one that shrinks."""
        return self.lags[-1] / (self.reads - self.writes)

    @property
    def _in_bursts(self) -> bool:
        large = max(self.lags[:-1])
        later = self.lags[self.lags.index(large) + 1 : -1]
        return any(lag <= _CAUGHT_UP * large for lag in later if large > NOISE)


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
    lags = tuple(max(0, latest - offset) for _, latest, offset in stood if offset is not None)
    return LagTrend(track, since, max(0.0, writes), max(0.0, reads), lags)


def grows_steadily(lags: Sequence[int]) -> bool:
    """Whether the lag grows from look to look; one dip among them does not count."""
    if len(lags) < _LEAST_LOOKS or lags[-1] <= lags[0]:
        return False
    steps = [later >= earlier for earlier, later in pairwise(lags)]
    return sum(steps) >= _STEADY * len(steps)


def per_second(rates: Iterable[float]) -> str:
    """Of rates a millisecond, together."""
    return f"{sum(rates) * 1000:,.3g} records a second"
