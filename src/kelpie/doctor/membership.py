"""Who is in a group, and what logs say of its members: what the rules on membership share."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

from kelpie.cluster import ClusterView, commands
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, Severity, quotes
from kelpie.model.time import Instant
from kelpie.model.words import counted, listed, moment
from kelpie.observations import Event, EventKind, GroupState, Member
from kelpie.observations.groups import CONSUMER, SHARE, STREAMS

HOUR_MS = 3_600_000
SESSION_MS = 45_000
"""session.timeout.ms of the Java client, unless set otherwise."""
NEW_PARTITIONS_MS = 6 * 60_000
"""By then members read partitions that were added: metadata.max.age.ms is 5 min by default; the rebalance
follows.
"""
MOST_EVIDENCE = 6
CLIENT_LOGS = "the logs of its consumers"
BROKER_LOGS = "the log of its coordinator"

_SIZE_LIMITS = {CONSUMER: "group.consumer.max.size", STREAMS: "group.streams.max.size"}
_TOOLS = {SHARE: "kafka-share-groups", STREAMS: "kafka-streams-groups"}

_RANDOM_TAIL = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_Row = TypeVar("_Row")


class Timeouts(NamedTuple):
    """Of the members, in ms; None if unknown. Where they differ, the longest counts, as in Kafka."""

    session_ms: int | None
    rebalance_ms: int | None


def timeouts(case: Case) -> Timeouts:
    """Records of the offsets topic have them; descriptions of classic groups do not."""
    rosters_by_age = [row.members for row in reversed(case.generations) if row.members][:1]
    rosters_by_age += [state.members for state in reversed(case.states) if state.members][:1]
    members = [member for roster in rosters_by_age for member in roster]
    sessions = [member.session_timeout_ms for member in members if member.session_timeout_ms > 0]
    rebalances = [member.rebalance_timeout_ms for member in members if member.rebalance_timeout_ms > 0]
    return Timeouts(max(sessions, default=None), max(rebalances, default=None))


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of logs that show a fault of a group's members."""

    case: Case
    events: Sequence[Event]
    """By time: all lines that show it."""
    occurrences: Sequence[Event]
    """Of these, one for each time that it happened."""

    @property
    def names(self) -> list[str]:
        return sorted({person_in(event) for event in self.occurrences})

    @property
    def who(self) -> str:
        return people(self.names)

    @property
    def how_often(self) -> str:
        """As in "3 times, the last at 2027-01-15 08:00:00 UTC"."""
        return f"{counted(len(self.occurrences), 'time')}, the last at {moment(self.last)}"

    @property
    def first(self) -> Instant | None:
        return min((event.at for event in self.events if event.at is not None), default=None)

    @property
    def last(self) -> Instant | None:
        return max((event.at for event in self.events if event.at is not None), default=None)

    @property
    def evidence(self) -> list[Evidence]:
        return quotes(shortened(self.events))

    def severity(self, severity: Severity) -> Severity:
        return by_age(self.case, self.last, severity)


def person(member_id: str, client_id: str = "") -> str:
    """Who a member is, beyond the id that it gets anew with each start: its client id, or instance id."""
    stem = _RANDOM_TAIL.sub("", member_id)
    return stem if stem != member_id else client_id or member_id


def person_of(member: Member) -> str:
    return member.instance_id or person(member.member_id, member.client_id)


def person_in(event: Event) -> str:
    """The client that a line is about; the file, if the line names none."""
    if event.instance_id:
        return event.instance_id
    if event.member:
        return person(event.member, event.client_id or "")
    return event.client_id or event.source.rpartition(":")[0] or event.source


def people(names: Iterable[str], most: int = 4) -> str:
    """As in "app-3 (9 times), app-1 and 2 others"; names that come more than once are counted."""
    counts = sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0]))
    words = [name if number == 1 else f"{name} ({number} times)" for name, number in counts[:most]]
    if len(counts) > most:
        words.append(counted(len(counts) - most, "other"))
    return listed(words)


_LEAVING = (EventKind.MEMBER_LEFT, EventKind.LEAVING)


def is_late_poll(event: Event) -> bool:
    """Whether it says that a member exceeded its poll limit: its own log, or the reason of its leaving."""
    return event.kind is EventKind.POLL_INTERVAL_EXCEEDED or (
        event.kind in _LEAVING and "poll timeout" in event.reason.lower()
    )


def state_text(state: GroupState) -> str:
    return f"state {state.state}, {counted(len(state.members), 'member')}"


def describing(case: Case, option: str) -> str:
    """Kafka's own command that shows the group. Share and Streams groups have tools of their own."""
    state = case.state
    tool = _TOOLS.get(state.kind if state is not None else "", "kafka-consumer-groups")
    return commands.kafka(tool, case.cluster, "--describe", "--group", case.group, option)


def shortened(rows: Sequence[_Row], most: int = MOST_EVIDENCE) -> Sequence[_Row]:
    """The first ones and the last one."""
    return [*rows[: most - 1], rows[-1]] if len(rows) > most else rows


def by_age(case: Case, last: Instant | None, severity: Severity) -> Severity:
    """What is long over is worth knowing, no more."""
    if last is not None and case.cluster.now - last > HOUR_MS:
        return Severity.NOTICE
    return severity


def had_coordinator(case: Case, at: Instant | None, within_ms: int) -> bool:
    """Whether nothing says that its coordinator was away at the time, or shortly before or after."""
    if at is None:
        return not case.is_cut_off
    for node in _coordinators(case):
        for outage in case.cluster.outages.get(node, ()):
            since = outage.at_earliest or 0
            until = case.cluster.now if outage.until is None else outage.until
            if since - within_ms <= at <= until + within_ms:
                return False
    lost = case.events_of(EventKind.COORDINATOR_LOST, EventKind.CONNECTION_FAILED, EventKind.LOOKUP_FAILED)
    return not any(event.at is not None and abs(event.at - at) <= within_ms for event in lost)


def _coordinators(case: Case) -> set[int]:
    """The brokers that lead its partition, or led it; if no leader was ever seen, its replicas."""
    partition = case.offsets_partition
    if partition is None:
        return set()
    cluster = case.cluster
    views = (*cluster.views.get(partition, ()), *cluster.earlier_views.get(partition, ()))
    leaders = {view.leader for view in views if view.leader >= 0}
    return leaders or {node for view in views for node in view.replicas}


def nobody_left(case: Case) -> bool:
    """Whether the records show that every member that joined has stayed.

    The member ids of each generation are among those of the next, down to the group as it is now.
    """
    ids = [{member.member_id for member in row.members} for row in case.generations]
    state = case.described
    if state is not None and state.members:
        ids.append({member.member_id for member in state.members})
    return bool(ids) and all(before <= after for before, after in pairwise(ids))


def size_limit(cluster: ClusterView, state: GroupState | None) -> tuple[str, int | None]:
    """The setting that limits how many members such a group may have, and its value, if that is known."""
    setting = _SIZE_LIMITS.get(state.kind if state is not None else "", "group.max.size")
    return setting, cluster.number(setting, f"broker {state.coordinator}" if state is not None else "broker")


def topics_of_members(case: Case) -> set[str]:
    """Topics that members subscribe to, or have partitions of."""
    members = case.members or ()
    assigned = {name.topic for member in members for name in member.assigned or ()}
    return assigned | {topic for member in members for topic in member.subscribed or ()}
