"""Groups that fall behind for an hour, and near misses: a notice becomes a warning."""

from tests.doctor.slow_faults.course import Course

FALL_BEHIND = frozenset({"slow", "slow-by-kip-848"})
"""Of these KLP318 is a warning in the end."""
NEAR_MISSES = frozenset({"well", "commits-rarely", "in-bursts", "peak", "catching-up"})
"""Nothing above a notice is said of them."""
AN_HOUR = Course(
    "an-hour",
    writes={"views": (15.0, 15.0), "history": (2.0, 2.0)},
    backlog={"history": 40_000},
    groups=FALL_BEHIND | NEAR_MISSES,
    minutes=61.0,
    keeps_every=4,
)
PEAK_S = 25 * 60.0
BURST_S = 8 * 60.0
RARELY_S = 4 * 60.0
