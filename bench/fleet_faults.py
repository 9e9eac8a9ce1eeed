"""What befalls groups of a fleet: each kind of fault, and what the doctor must say of it.

A fault changes what one group does. `told` is what must be found, as codes of rules; everything else of
warning or worse is a mistake.
"""

from collections.abc import Callable

from bench.fleet_disks import REBALANCE_MS, SESSION_MS, Transaction
from bench.fleet_groups import DAY_MS, MINUTE_MS, POLL_INTERVAL, ROUND_MS, Group, Hanging
from bench.fleet_lines import (
    GAVE_AWAY,
    JOINING,
    POLL_TIMEOUT,
    POLL_TIMEOUT_REASON,
    leaving,
    max_poll,
    unknown_member,
    unstable_offsets,
)

ONE_BACK_MS = 30_000


def stopped(group: Group) -> None:
    """Its consumers were shut down, and nobody started them again."""
    gone = group.before_end(10)
    group.runs(group.starts(group.start), gone)
    group.leaves(gone, 0)
    group.leaves(gone + 5_000, 1)
    group.told = {"KLP310"}


def stalled(group: Group) -> None:
    """It commits the same offset again and again: a record that it cannot digest."""
    stuck = group.before_end(8)
    last = group.end(stuck)
    begin = group.starts(group.start)
    group.runs(begin, stuck)
    group.runs(stuck, group.now, lambda _: last)
    group.told = {"KLP309"}


def rewound(group: Group) -> None:
    """Somebody set its offsets back with a tool, while it was down for a moment; it reads again since."""
    moment = group.before_end(6)
    group.runs(group.starts(group.start), moment - 20_000)
    group.leaves(moment - 19_000, 0)
    group.leaves(moment - 15_000, 1)
    back = 200 * group.pace
    group.commits(moment, group.at(group.end(moment) - back), epoch=-1)
    again = group.starts(moment + 2_000)
    group.runs(again, group.now, lambda at: group.end(at) - back + 100)
    group.told = {"KLP308"}


def expired(group: Group) -> None:
    """Nobody was in it for more than seven days."""
    last = group.start - 8 * DAY_MS
    begin = group.starts(last - 2 * MINUTE_MS)
    for number, at in enumerate(range(begin, last, ROUND_MS)):
        group.commits(at, group.at(500 + number))
    group.leaves(last, 0)
    group.leaves(last + 1_000, 1)
    group.is_forgotten(group.before_end(15))
    group.told = {"KLP302"}


def storm(group: Group) -> None:
    """One member comes and goes, and the other one has to rejoin each time."""
    begin = group.starts(group.start, 1)
    for at in range(group.before_end(7), group.before_end(2), 24_000):
        group.joins(at, 1)
        group.leaves(at + 12_000, 1)
    group.runs(begin, group.now)
    group.told = {"KLP201"}


def unstable(group: Group) -> None:
    """A producer died between its commit and the end of its transaction; consumers get no position."""
    begin = group.before_end(5)
    group.runs(group.starts(group.start, 1), begin)
    group.pending_since = begin + 500
    within = Transaction(pending_producer(group), is_open=True)
    group.commits(group.pending_since, group.at(group.end(begin)), within=within)
    for at in range(begin + 2_000, group.now, 15_000):
        group.logs(at, 0, unstable_offsets(group.positions))
    # Nothing is committed while it waits, and records come in: that is so, and has to be said, too.
    group.told = {"KLP307", "KLP310"}


def pending_producer(group: Group) -> int:
    return 9_900_000 + group.number


def lost_topic(group: Group) -> None:
    """Two members read, and a third one subscribes to a topic that does not exist."""
    begin = group.starts(group.start, 3, (group.topic, group.topic, f"{group.topic}-misspelt"))
    group.runs(begin, group.now)
    group.told = {"KLP207"}


def slow_poll(group: Group) -> None:
    """Twice, one of two members works on a batch for longer than max.poll.interval.ms.

    Java consumers tell their coordinator why they leave; librdkafka's tell it in their own log only.
    """
    is_java = group.variant % 2 == 0
    begin = group.starts(group.start)
    for last_poll in (group.before_end(17), group.before_end(9)):
        group.runs(begin, last_poll)
        gone = last_poll + REBALANCE_MS
        held = group.seats(last_poll)
        if is_java:
            group.logs(gone, 1, POLL_TIMEOUT, "WARN")
            group.logs(gone + 1, 1, leaving(group.name, group.member_id(1), POLL_TIMEOUT_REASON))
            taken_over = group.leaves(gone + 20, 1, POLL_TIMEOUT_REASON, POLL_INTERVAL)
        else:
            group.logs(gone, 1, max_poll(REBALANCE_MS, 187), "MAXPOLL")
            taken_over = group.leaves(gone + 20, 1, "not provided", POLL_INTERVAL)
        group.runs(last_poll, taken_over, positions=held[0].held)
        back = taken_over + ONE_BACK_MS
        if is_java:
            group.logs(back - 400, 1, GAVE_AWAY)
            group.logs(back - 300, 1, JOINING)
        begin = group.joins(back, 1)
        group.runs(taken_over, begin)
    group.runs(begin, group.now)
    group.told = {"KLP203"}


def lost_session(group: Group) -> None:
    """A member is silent for a whole session: it is dead, or comes back and finds that it was removed."""
    begin = group.starts(group.start)
    silent = group.before_end(9)
    group.runs(begin, silent)
    held = group.seats(silent)
    taken_over = group.expires(silent + SESSION_MS, 1)
    group.runs(silent, taken_over, positions=held[0].held)
    begin = taken_over
    if group.variant % 2 == 0:
        back = taken_over + ONE_BACK_MS
        group.logs(back - 400, 1, unknown_member(1, group.member_id(1)))
        group.logs(back - 350, 1, GAVE_AWAY)
        group.logs(back - 300, 1, JOINING)
        begin = group.joins(back, 1)
        group.runs(taken_over, begin)
    group.runs(begin, group.now)
    group.told = {"KLP204"}


def held_back(group: Group) -> None:
    """It reads committed records only, and somebody's transaction stays open in one of its partitions.

    Its coordinator knows nothing of the transaction, or does not end it though its time is over.
    """
    since = group.before_end(12)
    held = group.positions[group.variant % group.partitions]
    state, timeout = (("", -1), ("Ongoing", MINUTE_MS))[group.variant % 2]
    group.hanging = Hanging(held, since, 7_700_000 + group.number, state, timeout)
    for at in group.rounds(group.starts(group.start), group.now):
        group.commits(at, {position: group.stable(position, at) for position in group.positions})
    group.told = {"KLP306"}


FAULTS: dict[str, Callable[[Group], None]] = {
    "stopped": stopped,
    "stalled": stalled,
    "rewound": rewound,
    "expired": expired,
    "storm": storm,
    "unstable": unstable,
    "lost-topic": lost_topic,
    "slow-poll": slow_poll,
    "lost-session": lost_session,
    "held-back": held_back,
}
OUTAGE = "outage"
"""Two of three brokers die: a fault of a whole cluster, see `fleet_evidence`."""
