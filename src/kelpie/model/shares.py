"""Shares that were counted in trials, and how certain they are."""

from math import sqrt
from typing import NamedTuple

_Z = 1.959964
"""Of a normal distribution, 95 % lie within so many standard deviations."""


class Share(NamedTuple):
    """A share that was observed, and the interval in which the true one lies with 95 % confidence."""

    observed: float
    low: float
    high: float


def wilson(hits: int, trials: int) -> Share:
    """Wilson's interval. It holds for shares near zero, too: no hit in 10,000 trials gives 0 to 0.04 %."""
    if not trials:
        return Share(0.0, 0.0, 1.0)
    share = hits / trials
    scale = 1 + _Z * _Z / trials
    centre = (share + _Z * _Z / (2 * trials)) / scale
    half = _Z * sqrt(share * (1 - share) / trials + _Z * _Z / (4 * trials * trials)) / scale
    low = 0.0 if not hits else max(0.0, centre - half)
    high = 1.0 if hits == trials else min(1.0, centre + half)
    return Share(share, low, high)
