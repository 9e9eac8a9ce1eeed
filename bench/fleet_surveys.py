"""Snapshots that `kelpie collect` took of a fleet while all its brokers were alive.

Only they tell what no tool of Kafka's shows beside the rest: last stable offsets, and whose transactions are
open.
"""

from collections.abc import Sequence

from bench.fleet_disks import BROKERS, OFFSETS_PARTITIONS, Disks, coordinator_of, home, replicas
from bench.fleet_faults import pending_producer
from bench.fleet_groups import Group
from kelpie.errors import ErrorCode
from kelpie.evidence.snapshot_files import Header, pack
from kelpie.model.names import TopicPartition
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Committed,
    CoordinatorAnswer,
    GroupState,
    Listing,
    LogEnds,
    Member,
    Observations,
    OpenTransaction,
    PartitionView,
    Setting,
)

_EPOCH = 3
_TRANSACTION_MS = 900_000
_SETTINGS = {
    "group.max.size": "2147483647",
    "min.insync.replicas": "1",
    "offsets.retention.minutes": "10080",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.replication.factor": "2",
    "transaction.max.timeout.ms": "900000",
}
_OF_TOPICS = {"cleanup.policy": "delete", "retention.ms": "604800000"}


def snapshot(cluster: str, groups: Sequence[Group], disks: Disks, at: int, before: int | None) -> bytes:
    """The content of a file. `before`: when the one before was taken; the first tells settings, too."""
    is_first = before is None
    found = Observations()
    found.brokers = [
        BrokerView(node, f"10.0.1.{node}", 9092, alive=True, release="4.x", at=at, source=_broker(node))
        for node in BROKERS
    ]
    for node in BROKERS:
        _views(found, groups, node, at)
        listed = tuple(it.name for it in groups if coordinator_of(it.name) == node and it.exists(at))
        found.listings.append(Listing(node, listed, at=at, source=_broker(node)))
    for group in groups:
        if group.exists(at):
            _describe(found, group, at)
            _positions(found, group, at)
            _transactions(found, group, disks, at)
        elif before is not None and group.exists(before):
            _miss(found, group, at)
    if is_first:
        _settings(found, groups)
    header = Header(cluster, at, at, "10.0.1.1:9092", answered=len(BROKERS), unasked=0, has_settings=is_first)
    return pack(header, found)


def _broker(node: int) -> str:
    return f"broker {node} (10.0.1.{node}:9092)"


def _views(found: Observations, groups: Sequence[Group], node: int, at: int) -> None:
    places: list[tuple[str, int, tuple[int, ...]]] = [
        (OFFSETS_TOPIC, number, replicas(number)) for number in range(OFFSETS_PARTITIONS)
    ]
    places += [(group.topic, number, BROKERS) for group in groups for number in range(group.partitions)]
    found.partitions += [
        PartitionView(
            topic,
            partition,
            mine[0],
            mine,
            mine,
            leader_epoch=_EPOCH,
            told_by=node,
            at=at,
            source=_broker(node),
        )
        for topic, partition, mine in places
    ]


def _describe(found: Observations, group: Group, at: int) -> None:
    node = coordinator_of(group.name)
    members = tuple(
        Member(
            seat.member_id,
            seat.client_id,
            seat.host,
            subscribed=seat.topics,
            assigned=tuple(TopicPartition(*position) for position in seat.held),
        )
        for seat in group.seats(at)
    )
    found.states.append(
        GroupState(
            group.name,
            "Stable" if members else "Empty",
            protocol_type="consumer",
            protocol="range" if members else "",
            members=members,
            coordinator=node,
            at=at,
            source=_broker(node),
        )
    )


def _miss(found: Observations, group: Group, at: int) -> None:
    """The collector still knows of it, and asks for it until its coordinator says that it is gone."""
    node = coordinator_of(group.name)
    source = _broker(node)
    found.known_groups[group.name] = "an earlier survey"
    found.states.append(
        GroupState(
            group.name, "Dead", error=ErrorCode.GROUP_ID_NOT_FOUND, coordinator=node, at=at, source=source
        )
    )
    found.answers.append(
        CoordinatorAnswer(group.name, "OffsetFetch", ErrorCode.NONE, node, at=at, source=source)
    )


def _positions(found: Observations, group: Group, at: int) -> None:
    node = coordinator_of(group.name)
    found.answers.append(
        CoordinatorAnswer(group.name, "OffsetFetch", ErrorCode.NONE, node, at=at, source=_broker(node))
    )
    is_pending = group.pending_since is not None and group.pending_since <= at
    error = int(ErrorCode.UNSTABLE_OFFSET_COMMIT) if is_pending else 0
    found.committed += [
        Committed(
            group.name,
            *position,
            -1 if error else offset,
            error,
            -1 if error else _EPOCH,
            at=at,
            source=_broker(node),
        )
        for position, offset in group.committed(at).items()
    ]
    leader = BROKERS[0]
    found.ends += [
        LogEnds(
            *position,
            0,
            group.end(at),
            group.stable(position, at),
            leader_epoch=_EPOCH,
            last_written=group.start if group.is_idle else at,
            at=at,
            source=_broker(leader),
        )
        for position in group.positions
    ]


def _transactions(found: Observations, group: Group, disks: Disks, at: int) -> None:
    held = group.hanging
    if held is not None and group.end(at) > group.stable(held.position, at):
        found.transactions.append(
            OpenTransaction(
                *held.position,
                held.producer,
                0,
                group.stable(held.position, at),
                held.since,
                transactional_id=f"writer-{group.number}" if held.state else "",
                state=held.state,
                timeout_ms=held.timeout_ms,
                at=at,
                source=_broker(BROKERS[0]),
            )
        )
    if group.pending_since is not None and group.pending_since <= at:
        producer = pending_producer(group)
        found.transactions.append(
            OpenTransaction(
                OFFSETS_TOPIC,
                home(group.name),
                producer,
                0,
                disks.opened[producer],
                group.pending_since,
                transactional_id=f"mover-{group.number}",
                state="Ongoing",
                timeout_ms=_TRANSACTION_MS,
                at=at,
                source=_broker(coordinator_of(group.name)),
            )
        )


def _settings(found: Observations, groups: Sequence[Group]) -> None:
    found.settings = [
        Setting(f"broker {node}", name, value, _broker(node))
        for node in BROKERS
        for name, value in _SETTINGS.items()
    ]
    found.settings += [
        Setting(f"topic {group.topic}", name, value, _broker(BROKERS[0]))
        for group in groups
        for name, value in _OF_TOPICS.items()
    ]
    found.settings.append(Setting(f"topic {OFFSETS_TOPIC}", "cleanup.policy", "compact", _broker(BROKERS[0])))
