"""Small pieces of which tests build clusters and cases. What a test does not name is healthy and ordinary."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Finding, Judgement, Undetermined
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Commit,
    Committed,
    CoordinatorAnswer,
    Event,
    EventKind,
    GroupState,
    LogEnds,
    Member,
    PartitionView,
)

NOW: Instant = 1_800_000_000_000
"""2027-01-15 08:00 UTC. Tests count from here: NOW - 5 * MINUTE."""
SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def a_broker(node_id: int, alive: bool | None = True, reason: str = "", **fields: Any) -> BrokerView:
    reason = reason or ("connection refused" if alive is False else "")
    return BrokerView(node_id, f"kafka-{node_id}", 9092, alive=alive, reason=reason, at=NOW, **fields)


def a_view(
    partition: int,
    leader: int,
    replicas: Sequence[int] = (1, 2),
    in_sync: Sequence[int] | None = None,
    *,
    topic: str = OFFSETS_TOPIC,
    told_by: int | None = 1,
    at: Instant | None = NOW,
    **fields: Any,
) -> PartitionView:
    """In sync are all replicas if left out, or nobody if there is no leader."""
    if in_sync is None:
        in_sync = replicas if leader >= 0 else ()
    source = "topics.txt" if told_by is None else f"broker {told_by}"
    return PartitionView(
        topic,
        partition,
        leader,
        tuple(replicas),
        tuple(in_sync),
        told_by=told_by,
        at=at,
        source=source,
        **fields,
    )


def views(*rows: PartitionView) -> dict[TopicPartition, tuple[PartitionView, ...]]:
    found: defaultdict[TopicPartition, list[PartitionView]] = defaultdict(list)
    for row in rows:
        found[row.name].append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def an_offsets_topic(
    partitions: int = 50, brokers: Sequence[int] = (1, 2, 3), replicas: int = 2, **of: int
) -> list[PartitionView]:
    """Every partition is led by its first replica; `p43=-1` changes the leader of partition 43."""
    rows = []
    for partition in range(partitions):
        own = [brokers[(partition + at) % len(brokers)] for at in range(replicas)]
        rows.append(a_view(partition, of.get(f"p{partition}", own[0]), own))
    return rows


def a_cluster(
    *rows: PartitionView,
    dead: Iterable[int] = (),
    unknown: Iterable[int] = (),
    brokers: Iterable[int] = (1, 2, 3),
    offsets_partitions: int | None = 50,
    settings: Mapping[tuple[str, str], str] | None = None,
    ends: Iterable[LogEnds] = (),
    now: Instant = NOW,
    bootstrap: str = "kafka-1:9092",
    **fields: Any,
) -> ClusterView:
    """Brokers 1, 2 and 3, alive unless named dead or unknown; a sound offsets topic unless rows are given."""
    dead, unknown = set(dead), set(unknown)
    seen: defaultdict[TopicPartition, list[LogEnds]] = defaultdict(list)
    for end in ends:
        seen[end.name].append(end)
    return ClusterView(
        now=now,
        brokers={
            node: a_broker(node, None if node in unknown else node not in dead)
            for node in sorted({*brokers, *dead, *unknown})
        },
        views=views(*(rows or an_offsets_topic(offsets_partitions or 0))),
        offsets_partitions=offsets_partitions,
        settings=dict(settings or {}),
        ends={name: tuple(rows) for name, rows in seen.items()},
        bootstrap=bootstrap,
        **fields,
    )


def a_case(group: str = "billing", cluster: ClusterView | None = None, **fields: Any) -> Case:
    """`commits` and `committed` may be given as plain lists of rows."""
    for name in ("commits", "committed"):
        given = fields.get(name)
        if given is not None and not isinstance(given, Mapping):
            fields[name] = by_partition(given) if name == "commits" else {row.name: row for row in given}
    for name in ("answers", "states", "generations", "events", "unasked"):
        if name in fields:
            fields[name] = tuple(fields[name])
    return Case(group, cluster or a_cluster(), **fields)


def by_partition(rows: Iterable[Commit]) -> dict[TopicPartition, tuple[Commit, ...]]:
    found: defaultdict[TopicPartition, list[Commit]] = defaultdict(list)
    for row in rows:
        found[row.name].append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def commits(
    *moments: tuple[Instant, int],
    group: str = "billing",
    topic: str = "orders",
    partition: int = 0,
    **fields: Any,
) -> list[Commit]:
    """From pairs of time and offset."""
    return [Commit(group, topic, partition, offset, at, **fields) for at, offset in moments]


def a_committed(
    offset: int, group: str = "billing", topic: str = "orders", partition: int = 0, **fields: Any
) -> Committed:
    return Committed(group, topic, partition, offset, **{"at": NOW, "source": "broker 1", **fields})


def looks(*rows: Committed) -> dict[str, Any]:
    """What several surveys were told, by time, as fields of a case."""
    found: defaultdict[TopicPartition, list[Committed]] = defaultdict(list)
    for row in rows:
        found[row.name].append(row)
    return {
        "committed": {name: own[-1] for name, own in found.items()},
        "committed_over_time": {name: tuple(own) for name, own in found.items()},
    }


def an_end(
    latest: int, earliest: int = 0, topic: str = "orders", partition: int = 0, **fields: Any
) -> LogEnds:
    return LogEnds(
        topic, partition, earliest, latest, **{"stable": latest, "at": NOW, "source": "broker 1", **fields}
    )


def a_member(member_id: str = "app-1", *assigned: int, topic: str = "orders", **fields: Any) -> Member:
    return Member(
        member_id,
        client_id=fields.pop("client_id", member_id),
        assigned=tuple(TopicPartition(topic, partition) for partition in assigned),
        subscribed=fields.pop("subscribed", (topic,)),
        **fields,
    )


def a_state(state: str = "Stable", *members: Member, group: str = "billing", **fields: Any) -> GroupState:
    return GroupState(
        group,
        state,
        members=members,
        **{
            "protocol_type": "consumer",
            "protocol": "range",
            "coordinator": 1,
            "at": NOW,
            "source": "broker 1",
            **fields,
        },
    )


def an_answer(
    error: ErrorCode = ErrorCode.NONE,
    asked: str = "FindCoordinator",
    group: str = "billing",
    told_by: int | None = 1,
    **fields: Any,
) -> CoordinatorAnswer:
    return CoordinatorAnswer(
        group, asked, error, told_by, **{"at": NOW, "source": f"broker {told_by}", **fields}
    )


_line = count(1)


def an_event(
    kind: EventKind, at: Instant | None = NOW, group: str | None = "billing", **fields: Any
) -> Event:
    return Event(
        kind,
        at,
        **{"source": f"app.log:{next(_line)}", "text": f"the line of {kind}", "group": group, **fields},
    )


def events(kind: EventKind, *moments: Instant, group: str | None = "billing", **fields: Any) -> list[Event]:
    return [an_event(kind, at, group, **fields) for at in moments]


def a_name_on(partition: int, partitions: int = 50, prefix: str = "billing-") -> str:
    """A group that lives on this partition of the offsets topic."""
    return next(
        name for name in (f"{prefix}{n}" for n in count()) if partition_for(name, partitions) == partition
    )


def found(judgement: Judgement) -> Finding:
    assert isinstance(judgement, Finding), judgement
    return judgement


def missing(judgement: Judgement) -> tuple[str, ...]:
    assert isinstance(judgement, Undetermined), judgement
    return judgement.missing
