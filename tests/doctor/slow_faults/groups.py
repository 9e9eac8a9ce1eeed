"""The groups, what each reads, and what the doctor says of it in the end."""

from tests.doctor.slow_faults.course import Course

_WRITES = {
    "orders": (2.0, 2.0, 2.0),
    "clicks": (20.0, 2.0, 2.0, 2.0),
    "views": (15.0, 15.0),
    "history": (5.0, 5.0),
    "payments": (2.0, 2.0),
    "refunds": (2.0, 2.0),
}

LOUD = {"KLP211": "left-out", "KLP212": "two-applications", "KLP317": "poison", "KLP319": "hot"}
"""What is above a notice in the end, and follows from no other finding: code → group."""
ON_THE_WAY = {
    ("KLP301", "left-out"),
    ("KLP309", "poison"),
    ("KLP309", "held-up-for-a-while"),
}
"""What the doctor says until it has seen enough for the cause: nothing is committed in a partition that holds
records, or nothing moves.
"""
NOT_BEFORE_MIN = {"KLP211": 6, "KLP212": 6, "KLP301": 6, "KLP317": 5, "KLP319": 10}
"""None of them is above a notice before."""
NOTICES = {"KLP212": {"two-names"}, "KLP318": {"slow", "catching-up"}}
"""KLP318 is a warning after an hour."""
NEAR_MISSES = frozenset({"well", "left-out-for-a-while", "one-application", "held-up-for-a-while", "fast"})
"""None of these faults is ever said of them, not even as a notice."""
FAULTS_OF_MINUTES = Course(
    "minutes",
    writes=_WRITES,
    backlog={"history": 60_000},
    groups=NEAR_MISSES.union(LOUD.values(), *NOTICES.values()),
    minutes=13.0,
    members={"two-applications": 2, "two-names": 2, "one-application": 2, "hot": 4},
    held_up=LOUD["KLP317"],
)

ANOTHER_HOST = "127.0.0.2"
"""The address that one application has."""
POISON_OFFSET = 50
