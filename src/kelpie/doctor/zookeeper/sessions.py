"""Which session of ZooKeeper was whose, and which of them ZooKeeper expired.

ZooKeeper expires a session when it has heard nothing for its whole timeout. Until then the ephemeral nodes
stay, whoever wrote them is dead, stopped or cut off. Its log says so with the number of the session only;
snapshots of the tree and logs of consumers say whose number that is.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind


class Expiry(NamedTuple):
    """ZooKeeper expired the session of a member."""

    member: str
    event: Event
    at: Instant
    timeout_ms: int
    returned: Event | None
    """ZooKeeper's line about its return, if it came back with the expired session: so it was alive."""

    @property
    def last_heard(self) -> Instant:
        return self.at - self.timeout_ms


def sessions(case: Case) -> dict[int, str]:
    """Session → member."""
    whose: dict[int, str] = {}
    for snapshot in case.zookeeper:
        for row in snapshot.registrations or ():
            if row.session:
                whose[row.session] = row.member
    for member, event in begun(case):
        number = session_in(event)
        if number is not None:
            whose.setdefault(number, member)
    return whose


def begun(case: Case) -> Iterator[tuple[str, Event]]:
    """Lines about sessions that began, with the member. They do not name it: the only one of that log."""
    by_file: dict[str, set[str]] = {}
    for event in case.events:
        if event.member is not None and event.kind is not EventKind.ZK_SERVER_CONFLICT:
            by_file.setdefault(_file(event), set()).add(event.member)
    for event in case.cluster.events:
        if event.kind is EventKind.ZK_SESSION_BEGUN:
            members = by_file.get(_file(event), set())
            if len(members) == 1:
                yield next(iter(members)), event


def _file(event: Event) -> str:
    return event.source.rpartition(":")[0]


def expiries(case: Case) -> list[Expiry]:
    """Of members of this group, by time."""
    whose = sessions(case)
    returned = {
        session_in(event): event
        for event in case.cluster.events
        if event.kind is EventKind.ZK_SERVER_RETURNED
    }
    rows = []
    for event in case.cluster.events:
        number = session_in(event) if event.kind is EventKind.ZK_SERVER_EXPIRED else None
        timeout = whole_number(event.details.get("timeout_ms", ""))
        if number in whose and event.at is not None and timeout is not None:
            rows.append(Expiry(whose[number], event, event.at, timeout, returned.get(number)))
    return rows


def session_in(event: Event) -> int | None:
    """The session that an event names."""
    text = event.details.get("session", "")
    try:
        return int(text, 16)
    except ValueError:
        return None
