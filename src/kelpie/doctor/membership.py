"""Who is in a group and who said what: pieces that the rules on membership share."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, Severity
from kelpie.doctor.position_words import tool
from kelpie.model.quoting import quoted
from kelpie.model.time import Instant
from kelpie.model.words import counted, listed
from kelpie.observations import Event, EventKind, Member

HOUR_MS = 3_600_000
MOST_EVIDENCE = 6
CLIENT_LOGS = "the logs of its consumers"
BROKER_LOGS = "the log of its coordinator"

_RANDOM_TAIL = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_BROKER, _CONTROLLER = "broker:", "controller:"


class Timeouts(NamedTuple):
    """Of the members, in ms; None if unknown. Where they differ, the longest counts, as in Kafka."""

    session_ms: int | None
    rebalance_ms: int | None


def timeouts(case: Case) -> Timeouts:
    """Records of the offsets topic have them; descriptions of classic groups do not."""
    rows = [row.members for row in reversed(case.generations) if row.members][:1]
    rows += [state.members for state in reversed(case.states) if state.members][:1]
    there = [member for members in rows for member in members]
    return Timeouts(
        max((member.session_timeout_ms for member in there if member.session_timeout_ms > 0), default=None),
        max(
            (member.rebalance_timeout_ms for member in there if member.rebalance_timeout_ms > 0), default=None
        ),
    )


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
    told = [name if number == 1 else f"{name} ({number} times)" for name, number in counts[:most]]
    if len(counts) > most:
        told.append(counted(len(counts) - most, "other"))
    return listed(told)


def rosters(case: Case) -> list[tuple[Member, ...]]:
    """The members of each generation and of each description."""
    return [*(row.members for row in case.generations), *(state.members for state in case.states)]


def describing(case: Case, option: str) -> str:
    """Kafka's own command that shows the group."""
    command = tool(case.cluster, "kafka-consumer-groups.sh")
    return f"{command} --describe --group {quoted(case.group)} {option}"


def said(case: Case, *kinds: EventKind) -> list[Event]:
    return [event for event in case.events if event.kind in kinds]


def client_told(case: Case) -> bool:
    """Whether there are logs of this group's consumers."""
    return any(not event.kind.value.startswith((_BROKER, _CONTROLLER)) for event in case.events)


def broker_told(case: Case) -> bool:
    """Whether there is a log of its coordinator, in which the group comes up."""
    return any(event.kind.value.startswith(_BROKER) for event in case.events)


def evidence_of(events: Sequence[Event], most: int = MOST_EVIDENCE) -> list[Evidence]:
    """The lines themselves: the first ones and the last one."""
    if len(events) > most:
        events = [*events[: most - 1], events[-1]]
    return [Evidence(event.text, event.source, event.at) for event in events]


def last_time(events: Iterable[Event]) -> Instant | None:
    return max((event.at for event in events if event.at is not None), default=None)


def first_time(events: Iterable[Event]) -> Instant | None:
    return min((event.at for event in events if event.at is not None), default=None)


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
    lost = said(case, EventKind.COORDINATOR_LOST, EventKind.CONNECTION_FAILED, EventKind.LOOKUP_FAILED)
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
