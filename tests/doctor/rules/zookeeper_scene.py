"""Groups of ZooKeeper for the tests of their rules: snapshots of the tree, and lines of members' logs."""

from collections.abc import Iterable, Mapping, Sequence

from kelpie.doctor.case import Case
from kelpie.doctor.cases import build
from kelpie.model.time import Instant
from kelpie.observations import (
    Event,
    EventKind,
    LogEnds,
    Observations,
    OwnerNode,
    PartitionView,
    Registration,
    Setting,
    ZooKeeperGroup,
)
from kelpie.observations.zookeeper_groups import StoredOffset, TopicStreams
from tests.doctor.building import NOW, SECOND

GROUP, TOPIC = "billing", "orders"
A, B, C = (f"{GROUP}_{name}" for name in ("app-1", "app-2", "app-3"))
SESSIONS = {A: 0xA, B: 0xB, C: 0xC}


def look(
    owned: Mapping[str, Sequence[int]],
    at: Instant,
    *,
    claimed: Instant = NOW - 600 * SECOND,
    members: Iterable[str] | None = None,
    sessions: Mapping[str, int] = SESSIONS,
    offsets: Mapping[int, tuple[int, Instant]] | None = None,
    pattern: str = "static",
    topic: str = TOPIC,
) -> ZooKeeperGroup:
    """`owned`: member → partitions. `members` are registered; those that own something if left out."""
    registered = list(owned) if members is None else list(members)
    return ZooKeeperGroup(
        GROUP,
        tuple(
            Registration(member, (TopicStreams(topic, 1),), pattern, sessions[member], NOW - 900 * SECOND)
            for member in registered
        ),
        tuple(
            OwnerNode(TOPIC, number, f"{member}-0", SESSIONS.get(member) or sessions[member], claimed)
            for member, numbers in owned.items()
            for number in numbers
        ),
        tuple(StoredOffset(TOPIC, number, offset, at) for number, (offset, at) in (offsets or {}).items()),
        at,
        "ZooKeeper at zk-1:2181",
    )


def line(kind: EventKind, at: Instant, member: str = A, **details: str) -> Event:
    partition = details.pop("partition", None)
    return Event(
        kind,
        at,
        f"{member}.log:1",
        f"a line of {kind.value}",
        GROUP,
        member,
        topic=TOPIC if partition is not None else None,
        partition=int(partition) if partition is not None else None,
        details=details,
    )


def rebalance(member: str, at: Instant, numbers: Iterable[int] = ()) -> list[Event]:
    """One that succeeds at the first try."""
    names = ",".join(f"{TOPIC}-{number}" for number in numbers)
    return [
        line(EventKind.ZK_ATTEMPT, at, member, attempt="0"),
        line(EventKind.ZK_RELEASED, at + 1, member),
        line(EventKind.ZK_REBALANCED, at + 100, member, partitions=names),
    ]


def failing(member: str, holder: str, at: Instant, *, tries: int, gives_up: str = "") -> list[Event]:
    """Tries that meet partition 0 of another member, half a second apart; then it may give up, somewhere."""
    events = []
    for number in range(tries):
        begun = at + number * 500
        events += [
            line(EventKind.ZK_ATTEMPT, begun, member, attempt=str(number)),
            line(EventKind.ZK_RELEASED, begun + 1, member),
            line(
                EventKind.ZK_CONFLICT,
                begun + 2,
                member,
                partition="0",
                holder=f"{holder}-0",
                thread=f"{member}-0",
            ),
            line(EventKind.ZK_ATTEMPT_FAILED, begun + 3, member),
        ]
    if gives_up:
        events.append(
            line(EventKind.REBALANCE_FAILED, at + tries * 500, member, retries=str(tries), form=gives_up)
        )
    return events


def computed(member: str, at: Instant, members: Iterable[str], partitions: int = 4) -> Event:
    threads = ",".join(f"{name}-0" for name in members)
    numbers = ",".join(map(str, range(partitions)))
    return line(EventKind.ZK_COMPUTED, at, member, partition="0", partitions=numbers, threads=threads)


def settings(member: str, **values: int) -> list[Setting]:
    of = f"consumer {member}"
    rows = [Setting(of, name.replace("_", "."), str(value)) for name, value in values.items()]
    return [Setting(of, "group.id", GROUP), *rows]


def a_zookeeper_case(
    looks: Iterable[ZooKeeperGroup] = (),
    events: Iterable[Event] = (),
    *,
    partitions: int = 4,
    settings: Iterable[Setting] = (),
    of_server: Iterable[Event] = (),
    ends: Mapping[int, int] | None = None,
) -> Case:
    rows = Observations(
        zookeeper_groups=list(looks),
        events=[*events, *of_server],
        settings=list(settings),
        partitions=[PartitionView(TOPIC, number, 1, (1,), (1,)) for number in range(partitions)],
        ends=[LogEnds(TOPIC, number, 0, end, at=NOW) for number, end in (ends or {}).items()],
    )
    _, cases = build(rows, now=NOW, groups=[GROUP])
    return cases[0]
