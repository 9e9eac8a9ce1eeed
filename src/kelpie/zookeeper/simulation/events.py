"""What happens to a group: each event begins now, and says how long it goes on."""

from collections.abc import Callable
from dataclasses import dataclass

from kelpie.zookeeper.simulation.group import SimulatedGroup
from kelpie.zookeeper.simulation.member import SimulatedMember

START_MS = (700.0, 1_100.0)
"""From the start of a process to its registration, for a JVM: 0.85 s as recorded."""
CLOSE_MS = (20.0, 90.0)
"""From SIGTERM to the end of the session: 0.07 s as recorded."""


@dataclass(frozen=True, slots=True)
class GroupEvent:
    name: str
    what: str
    begin: Callable[[SimulatedGroup], float]
    """Returns after how many milliseconds the last thing happens."""
    least_members: int = 1
    """With fewer, nobody would be left."""


def _kill(group: SimulatedGroup) -> float:
    _any(group).kill()
    return 0.0


def _leave(group: SimulatedGroup) -> float:
    return _close(group, _any(group))


def _kill_and_join(group: SimulatedGroup) -> float:
    _any(group).kill()
    return _start(group)


def _kill_and_leave(group: SimulatedGroup) -> float:
    _any(group).kill()
    return _close(group, _any(group)) if group.living else 0.0


def _start_all(group: SimulatedGroup) -> float:
    """The group is empty: all begin at once. Called before any member is there."""
    return max(_start(group) for _ in range(group.settings.members))


def _restart_all(group: SimulatedGroup) -> float:
    for member in group.living:
        member.kill()
    return _start_all(group)


def _rolling(group: SimulatedGroup) -> float:
    """One after the other: a clean end, a start, and some seconds until the next."""
    at = 0.0
    for member in group.living:
        group.agenda.after(at, _close, group, member)
        group.agenda.after(at + CLOSE_MS[1], _start, group)
        at += group.chance.uniform(3_000, 10_000)
    return at


def _pause(group: SimulatedGroup) -> float:
    """For half a session to two sessions."""
    for_ms = group.chance.uniform(0.5, 2.0) * group.settings.session_timeout_ms
    group.pause_zookeeper(for_ms)
    return for_ms


def _any(group: SimulatedGroup) -> SimulatedMember:
    living = group.living
    return living[group.chance.randrange(0, len(living))]


def _start(group: SimulatedGroup) -> float:
    after_ms = group.chance.uniform(*START_MS)
    group.agenda.after(after_ms, group.new_member().start)
    return after_ms


def _close(group: SimulatedGroup, member: SimulatedMember) -> float:
    after_ms = group.chance.uniform(*CLOSE_MS)
    group.agenda.after(after_ms, member.close)
    return after_ms


EVENTS: dict[str, GroupEvent] = {
    event.name: event
    for event in (
        GroupEvent("kill+join", "a member is killed (-9), and another one starts", _kill_and_join),
        GroupEvent("kill+leave", "a member is killed, and another one leaves cleanly", _kill_and_leave, 3),
        GroupEvent("restart-all", "all members are killed, and as many start at once", _restart_all),
        GroupEvent("rolling", "all members restart cleanly, one after the other", _rolling),
        GroupEvent("zookeeper-pause", "ZooKeeper does not answer for half a session or longer", _pause),
        GroupEvent("start-all", "all members start at once; nobody was there", _start_all),
        GroupEvent("kill", "a member is killed, and nothing else happens", _kill, 2),
        GroupEvent("leave", "a member leaves cleanly", _leave, 2),
    )
}
