"""How likely a rebalance of Kafka 0.8 fails, in closed form: the simulator's answer without its runs.

A member that is killed stays registered, and owns its partitions, until its session expires. Until then:

1.  Conflict: the event changes the list of members, and so the ranges. A survivor fails exactly if it is
    given a partition that the dead member's nodes hold: if the dead one's old range is not within its new
    one. Seen on 0.8.2.2 in 33 of 33 runs, and in all runs of the simulator.
2.  Too late: the last try is (retries − 1) × back-off after the first; after it comes only a sleep. The
    session ends between timeout − ping interval and timeout + tick after the kill: the client was heard last
    up to a third of its timeout before, and ZooKeeper rounds up to its next tick.

If all members are killed, any of their sessions can be the one that is in the way; that is an upper bound, as
a new member meets only some of them.

The probability is the product. Live members that wait for each other added nothing in the simulator.
"""

from enum import StrEnum

_START_MS, _CLOSE_MS = 900.0, 55.0
_REQUEST_MS = 3.3
"""As in the simulator, on the average."""
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
    # A try reads all registrations; offset, owner node and its release are a request for each own partition.
    attempt_ms = _REQUEST_MS * (6 + members + 3 * partitions / max(1, members))
    last_try_ms = delay_ms + (retries - 1) * (backoff_ms + attempt_ms) + attempt_ms
    sessions = members if event is Disturbance.RESTART_ALL else 1
    late = session_outlives(last_try_ms, session_timeout_ms, tick_ms, sessions)
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


def session_outlives(
    after_ms: float, session_timeout_ms: int, tick_ms: int = 2_000, sessions: int = 1
) -> float:
    """The probability that a killed member's session, or one of several, is there so long after the kill.

    When each was heard of last is uniform in a ping interval, and the ticks of ZooKeeper fall anywhere. With
    the time x from kill to tick beyond what is asked for, one of n is there with 1 − (1 − x ÷ ping)ⁿ.
    """
    ping_ms = max(1.0, min(session_timeout_ms / 3, _MOST_PING_MS))
    tick = float(max(1, tick_ms))
    late_ms = after_ms - session_timeout_ms

    def up_to(x: float) -> float:
        inside = min(x, ping_ms)
        none_left = ping_ms / (sessions + 1) * (1 - inside / ping_ms) ** (sessions + 1)
        return x + none_left

    low, high = max(0.0, -late_ms), tick - late_ms
    return min(1.0, max(0.0, (up_to(high) - up_to(low)) / tick)) if high > low else 0.0


def _range(consumer: int, consumers: int, threads: int, partitions: int) -> tuple[int, int]:
    """Of all threads of a consumer together."""
    share, extra = divmod(partitions, consumers * threads)
    first, end = consumer * threads, (consumer + 1) * threads
    return first * share + min(first, extra), end * share + min(end, extra)


def _is_within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner[0] == inner[1] or (outer[0] <= inner[0] and inner[1] <= outer[1])
