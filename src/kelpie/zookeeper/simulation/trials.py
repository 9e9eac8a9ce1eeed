"""Many seeded runs of an event on a group: how often a rebalance fails, and how long nobody reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kelpie.model.names import TopicPartition
from kelpie.model.shares import Share, wilson
from kelpie.model.time import Instant
from kelpie.simulation.agenda import Chance
from kelpie.zookeeper.assignment import assign, assign_all, consumer_of
from kelpie.zookeeper.simulation.events import GroupEvent
from kelpie.zookeeper.simulation.group import GroupSettings, SimulatedGroup
from kelpie.zookeeper.simulation.member import SimulatedMember

_LOOK_EVERY_MS = 250
_SPREAD_MS = 2_000
_SETTLE_LIMIT_MS = 120_000


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one group."""

    failed: frozenset[str]
    """Members, surviving or new, of which a rebalance failed after the event began."""
    predicted: frozenset[str]
    """Members whose new range, with the killed ones still registered, meets an old range of a killed one."""
    idle: int
    """Members that own nothing at the end, though they have a share, or that gave up at their start."""
    unread_ms: int | None
    """From the event until every partition was read again for good; None: not within the time observed."""
    expiry_ms: int | None
    """From the event until the last session of a killed member expired."""


@dataclass(slots=True)
class Trials:
    settings: GroupSettings
    event: str
    runs: int = 0
    runs_that_failed: int = 0
    failed_members: int = 0
    idle_members: int = 0
    unrecovered: int = 0
    unread_ms: list[int] = field(default_factory=list)

    def add(self, run: Run) -> None:
        self.runs += 1
        self.runs_that_failed += bool(run.failed)
        self.failed_members += len(run.failed)
        self.idle_members += run.idle
        if run.unread_ms is None:
            self.unrecovered += 1
        else:
            self.unread_ms.append(run.unread_ms)

    @property
    def failed(self) -> Share:
        return wilson(self.runs_that_failed, self.runs)

    def unread_quantile(self, share: float) -> int | None:
        """By when this share of all runs had recovered; None: so many never did."""
        at = max(0, -(-int(share * self.runs * 1_000) // 1_000) - 1)
        ordered = sorted(self.unread_ms)
        return ordered[at] if at < len(ordered) else None


def run_trials(settings: GroupSettings, event: GroupEvent, chances: Iterable[Chance]) -> Trials:
    trials = Trials(settings, event.name)
    for chance in chances:
        trials.add(run_once(settings, event, chance))
    return trials


def run_once(settings: GroupSettings, event: GroupEvent, chance: Chance) -> Run:
    group = SimulatedGroup(settings, chance)
    if event.name != "start-all":
        _settle(group)
    began = group.agenda.now
    owned_before = group.owners()
    before = group.living
    started_before = len(group.members)
    over = began + event.begin(group)
    killed = [member for member in before if not member.is_alive]
    read_again = _observe(group, int(over))
    started = group.members[started_before:]
    remaining = [member for member in before if member not in killed] + started
    expiries = [
        group.server.expiries[session]
        for member in killed
        for session in member.sessions
        if session in group.server.expiries
    ]
    return Run(
        failed=frozenset(
            member.consumer_id for member in remaining if any(at >= began for at, _ in member.failures)
        ),
        predicted=_predicted(group, owned_before, killed, remaining),
        idle=_idle(group, remaining),
        unread_ms=None if read_again is None else read_again - began,
        expiry_ms=max(expiries) - began if expiries else None,
    )


def _settle(group: SimulatedGroup) -> None:
    """Start all members, wait until every one has its share, and let some time pass."""
    for _ in range(group.settings.members):
        group.agenda.after(group.chance.uniform(0, _SPREAD_MS), group.new_member().start)
    limit = group.agenda.now + _SETTLE_LIMIT_MS
    group.agenda.run(group.agenda.now + 2 * _SPREAD_MS)
    while group.unread() or group.is_rebalancing:
        if group.agenda.now >= limit:
            _heal(group)
            limit += _SETTLE_LIMIT_MS
        group.agenda.run(group.agenda.now + _LOOK_EVERY_MS)
    group.agenda.run(group.agenda.now + int(group.chance.uniform(0, group.settings.session_timeout_ms)))


def _heal(group: SimulatedGroup) -> None:
    """A start can fail by itself; then a member is started anew, as an operator would do it."""
    while len(group.living) < group.settings.members:
        group.new_member().start()
    group.living[0].close()
    group.new_member().start()


def _observe(group: SimulatedGroup, over: Instant) -> Instant | None:
    """Let time pass until the group is at rest. When every partition was read again, for good."""
    settings = group.settings
    patience = 2 * settings.session_timeout_ms + 2 * settings.tick_ms + settings.retries * settings.backoff_ms
    limit = over + patience + 60_000
    quiet_from: Instant | None = None
    read_again: Instant | None = None
    while group.agenda.now < limit:
        group.agenda.run(group.agenda.now + _LOOK_EVERY_MS)
        if group.unread():
            read_again = None
        elif read_again is None:
            read_again = group.agenda.now
        is_quiet = group.agenda.now > over and not group.is_rebalancing and not group.has_dead_session
        if not is_quiet:
            quiet_from = None
        elif quiet_from is None:
            quiet_from = group.agenda.now
        elif (
            read_again is not None and group.agenda.now - quiet_from > settings.backoff_ms + 1_000
        ) or not group.living:
            break
    return read_again


def _predicted(
    group: SimulatedGroup,
    owned_before: Mapping[TopicPartition, str],
    killed: list[SimulatedMember],
    remaining: list[SimulatedMember],
) -> frozenset[str]:
    """The exact condition, as seen on 0.8.2.2: who needs a partition that a dead session still holds."""
    settings = group.settings
    dead = {member.consumer_id for member in killed}
    held = {partition for partition, consumer in owned_before.items() if consumer in dead}
    stay = [member.consumer_id for member in remaining if not member.left]
    threads = dict.fromkeys(settings.topic_names, settings.threads)
    members = dict.fromkeys([*stay, *dead], threads)
    partitions = {topic: range(settings.partitions) for topic in settings.topic_names}
    return frozenset(consumer for consumer in stay if held & assign(consumer, members, partitions).keys())


def _idle(group: SimulatedGroup, remaining: list[SimulatedMember]) -> int:
    settings = group.settings
    threads = dict.fromkeys(settings.topic_names, settings.threads)
    members = {member.consumer_id: threads for member in group.living}
    partitions = {topic: range(settings.partitions) for topic in settings.topic_names}
    shares = {consumer_of(thread) for thread in assign_all(members, partitions).values()}
    without = [member for member in group.living if member.consumer_id in shares and not member.reading]
    gave_up = [member for member in remaining if not member.is_alive and not member.left]
    return len(without) + len(gave_up)
