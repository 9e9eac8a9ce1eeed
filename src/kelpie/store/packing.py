"""Rows to bytes and back: JSON, squeezed. Names may hold anything, also lone surrogates."""

import json
import zlib
from collections.abc import Iterable
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    Broker,
    Committed,
    GroupState,
    LogEnds,
    Member,
    Observations,
    PartitionView,
)

_KEPT_ERRORS = (ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT)
"""The second is normal for a moment: only who saw it before can tell that it stays."""


class Unpackable(Exception):
    """The bytes are not what was once written."""


def pack_survey(seen: Observations, at: Instant) -> bytes:
    """States, committed offsets and ends of logs that were seen at that time, and not before."""
    return _squeezed(
        {
            "brokers": sorted({(row.node_id, row.host, row.port) for row in seen.brokers if row.host}),
            "offsets_topic": _offsets_topic(seen, at),
            "states": [_state(row) for row in seen.states if _fresh(row.at, at) and not row.error],
            "committed": [
                [row.group, row.topic, row.partition, row.offset, row.leader_epoch, row.error]
                for row in seen.committed
                if _fresh(row.at, at) and row.error in _KEPT_ERRORS
            ],
            "ends": [
                [row.topic, row.partition, row.earliest, row.latest, row.stable, row.leader_epoch]
                for row in seen.ends
                if _fresh(row.at, at) and not row.error and row.latest >= 0 and row.earliest >= 0
            ],
        }
    )


def unpack_survey(packed: bytes, at: Instant, source: str) -> Observations:
    data = _loosened(packed)
    try:
        return Observations(
            brokers=[Broker(node, host, port, at=at, source=source) for node, host, port in data["brokers"]],
            partitions=[
                PartitionView(
                    OFFSETS_TOPIC, partition, leader, tuple(replicas), tuple(in_sync), at=at, source=source
                )
                for partition, leader, replicas, in_sync in data["offsets_topic"]
            ],
            states=[_as_state(row, at, source) for row in data["states"]],
            committed=[
                Committed(group, topic, partition, offset, error, epoch, "", at, source)
                for group, topic, partition, offset, epoch, error in data["committed"]
            ],
            ends=[
                LogEnds(topic, partition, earliest, latest, stable, leader_epoch=epoch, at=at, source=source)
                for topic, partition, earliest, latest, stable, epoch in data["ends"]
            ],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Unpackable(str(error)) from None


def pack_offsets(rows: Iterable[Committed]) -> bytes:
    return _squeezed([[row.topic, row.partition, row.offset, row.leader_epoch] for row in rows])


def unpack_offsets(packed: bytes, group: str, at: Instant, source: str) -> list[Committed]:
    try:
        return [
            Committed(group, topic, partition, offset, 0, epoch, "", at, source)
            for topic, partition, offset, epoch in _loosened(packed)
        ]
    except (TypeError, ValueError) as error:
        raise Unpackable(str(error)) from None


def _offsets_topic(seen: Observations, at: Instant) -> list[list[Any]]:
    """Of each partition the view that names most replicas: Kafka 0.9 leaves out who is dead."""
    fullest: dict[int, PartitionView] = {}
    for row in seen.partitions:
        if (
            row.topic == OFFSETS_TOPIC
            and row.partition >= 0
            and row.told_by is not None
            and _fresh(row.at, at)
        ):
            known = fullest.get(row.partition)
            if known is None or len(row.replicas) > len(known.replicas):
                fullest[row.partition] = row
    return [
        [number, row.leader, list(row.replicas), list(row.in_sync)] for number, row in sorted(fullest.items())
    ]


def _fresh(row_at: Instant | None, survey_at: Instant) -> bool:
    return row_at is not None and abs(survey_at - row_at) < 120_000


def _state(row: GroupState) -> list[Any]:
    members = [
        [
            it.member_id,
            it.client_id,
            it.host,
            it.instance_id,
            None if it.assigned is None else [list(name) for name in it.assigned],
            it.epoch,
        ]
        for it in row.members
    ]
    return [
        row.group,
        row.state,
        row.kind,
        row.protocol_type,
        row.protocol,
        row.epoch,
        row.coordinator,
        members,
    ]


def _as_state(row: list[Any], at: Instant, source: str) -> GroupState:
    group, state, kind, protocol_type, protocol, epoch, coordinator, members = row
    return GroupState(
        group,
        state,
        kind,
        protocol_type,
        protocol,
        epoch,
        tuple(map(_as_member, members)),
        coordinator,
        ErrorCode.NONE,
        at,
        source,
    )


def _as_member(row: list[Any]) -> Member:
    member_id, client_id, host, instance_id, assigned, epoch = row
    return Member(
        member_id,
        client_id,
        host,
        instance_id,
        assigned=None if assigned is None else tuple(TopicPartition(*name) for name in assigned),
        epoch=epoch,
    )


def _squeezed(data: object) -> bytes:
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode("ascii"), 1)


def _loosened(packed: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(packed))
    except (zlib.error, ValueError) as error:
        raise Unpackable(str(error)) from None
