"""How likely a rebalance of Kafka 0.8 fails, in closed form: the simulator's answer without its runs.

A member that is killed stays registered, and owns its partitions, until its session expires. Until then:

1.  Conflict: the event changes the list of members, and so the ranges. A survivor fails exactly if it is
    given a partition that the dead member's nodes hold: if the dead one's old range is not within its new
    one. Seen on 0.8.2.2 in 33 of 33 runs, and in all runs of the simulator.
2.  Too late: the last try is (retries − 1) × back-off after the first; after it comes only a sleep. The
    session ends between timeout − ping interval and timeout + tick after the kill: the client was heard last
    up to a third of its timeout before, and ZooKeeper rounds up to its next tick.

The probability is the product. Live members that wait for each other added nothing in the simulator.
"""

from enum import StrEnum

_START_MS, _CLOSE_MS = 900.0, 55.0
_ATTEMPT_MS = 60.0
"""Reading, releasing and claiming, while nothing is in the way but the node of a dead session."""
_MOST_PING_MS = 10_000


class Disturbance(StrEnum):
    KILL_AND_JOIN = "kill+join"
    KILL_AND_LEAVE = "kill+leave"
    RESTART_ALL = "restart-all"


def failure_probability(
    event: Disturbance,
    *,
    members: int,
    partitions: int,
    threads: int = 1,
    retries: int = 4,
    backoff_ms: int = 2_000,
    session_timeout_ms: int = 6_000,
    tick_ms: int = 2_000,
) -> float:
    """Of at least one member, after this event on a group of so many consumers with so many threads each.

    The number of topics does not matter, while all members read all of them: the ranges are the same in each.
    """
    delay_ms = _CLOSE_MS if event is Disturbance.KILL_AND_LEAVE else _START_MS
    last_try_ms = delay_ms + (retries - 1) * (backoff_ms + _ATTEMPT_MS) + _ATTEMPT_MS
    late = session_outlives(last_try_ms, session_timeout_ms, tick_ms)
    return conflict_probability(event, members=members, partitions=partitions, threads=threads) * late


def conflict_probability(event: Disturbance, *, members: int, partitions: int, threads: int = 1) -> float:
    """That a living member is given a partition which the dead one holds; victims and names are random."""
    if members < 1 or partitions < 1:
        return 0.0
    if event is Disturbance.RESTART_ALL:
        return 1.0
    if event is Disturbance.KILL_AND_LEAVE:
        if members < 2:
            return 0.0
        cases = [
            (victim, victim - (leaver < victim), members - 1)
            for victim in range(members)
            for leaver in range(members)
            if leaver != victim
        ]
    else:
        cases = [
            (victim, victim + (position <= victim), members + 1)
            for victim in range(members)
            for position in range(members + 1)
        ]
    conflicts = sum(
        not _is_within(
            _range(victim, members, threads, partitions), _range(now_at, count, threads, partitions)
        )
        for victim, now_at, count in cases
    )
    return conflicts / len(cases)


def session_outlives(after_ms: float, session_timeout_ms: int, tick_ms: int = 2_000) -> float:
    """The probability that a killed member's session is still there so long after the kill."""
    ping_ms = max(1.0, min(session_timeout_ms / 3, _MOST_PING_MS))
    return _sum_exceeds(after_ms - session_timeout_ms + ping_ms, ping_ms, float(max(1, tick_ms)))


def _range(consumer: int, consumers: int, threads: int, partitions: int) -> tuple[int, int]:
    """Of all threads of a consumer together."""
    share, extra = divmod(partitions, consumers * threads)
    first, end = consumer * threads, (consumer + 1) * threads
    return first * share + min(first, extra), end * share + min(end, extra)


def _is_within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner[0] == inner[1] or (outer[0] <= inner[0] and inner[1] <= outer[1])


def _sum_exceeds(limit: float, first: float, second: float) -> float:
    """That two uniform numbers, of [0, first] and [0, second], together exceed the limit."""

    def below(x: float) -> float:
        return max(0.0, x) ** 2 / (2 * first * second)

    within = below(limit) - below(limit - first) - below(limit - second) + below(limit - first - second)
    return 1.0 - min(1.0, max(0.0, within))
