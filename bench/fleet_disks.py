"""Disks of brokers: segments of the offsets topic, written through the codec, with a copy on each replica."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kelpie.model.partitioning import partition_for
from kelpie.wire import consumer_protocol as clients
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.records import ControlType, Record, write_batch, write_control_batch
from kelpie.wire.structs import TopicPartitions

OFFSETS_PARTITIONS = 50
BROKERS = (1, 2, 3)
SESSION_MS, REBALANCE_MS = 45_000, 300_000
Position = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A member, and what it holds."""

    client_id: str
    member_id: str
    topics: tuple[str, ...]
    held: tuple[Position, ...] = ()

    @property
    def host(self) -> str:
        return f"/10.0.0.{1 + sum(self.client_id.encode()) % 250}"


@dataclass(frozen=True, slots=True)
class Transaction:
    producer: int
    is_open: bool = False
    is_aborted: bool = False


Written = tuple[Sequence[tuple[bytes, bytes | None]], Transaction | None]
"""Keys and values of one batch, and the transaction that wrote it, if any."""


@dataclass
class Disks:
    """What groups write, to be put down in the order of time: a partition's log has no other."""

    written: dict[int, list[tuple[int, int, Written]]] = field(default_factory=dict)
    opened: dict[int, int] = field(default_factory=dict)
    """By producer, where its transaction begins that has no end. Known once all is saved."""

    def commit(
        self,
        group: str,
        at: int,
        offsets: dict[Position, int],
        *,
        epoch: int = 3,
        within: Transaction | None = None,
    ) -> None:
        records = []
        for (topic, partition), offset in offsets.items():
            value = OffsetCommitValue(offset=offset, leader_epoch=epoch, metadata="", commit_timestamp=at)
            records.append((_key(group, topic, partition), offsets_topic.encode_value(value, 3)))
        self._write(group, at, (records, within))

    def forget(self, group: str, at: int, positions: Sequence[Position]) -> None:
        """Its offsets have expired, and with the last of them the group itself."""
        removed: list[tuple[bytes, bytes | None]] = [(_key(group, *it), None) for it in positions]
        removed.append((offsets_topic.encode_key(GroupMetadataKey(group=group)), None))
        self._write(group, at, (removed, None))

    def generation(self, group: str, at: int, generation: int, seats: Sequence[Seat]) -> None:
        members = [
            MemberMetadata(
                member_id=seat.member_id,
                client_id=seat.client_id,
                client_host=seat.host,
                rebalance_timeout=REBALANCE_MS,
                session_timeout=SESSION_MS,
                subscription=clients.encode(clients.Subscription(topics=list(seat.topics)), 3),
                assignment=clients.encode(_assignment(seat), 3),
            )
            for seat in seats
        ]
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=generation,
            protocol="range" if members else None,
            leader=members[0].member_id if members else None,
            current_state_timestamp=at,
            members=members,
        )
        key = offsets_topic.encode_key(GroupMetadataKey(group=group))
        self._write(group, at, ([(key, offsets_topic.encode_value(value, 3))], None))

    def _write(self, group: str, at: int, what: Written) -> None:
        mine = self.written.setdefault(home(group), [])
        mine.append((at, len(mine), what))

    def save(self, folder: Path, cluster: str) -> int:
        """One folder for each broker. How many records a partition has, all together."""
        for broker in BROKERS:
            disk = folder / f"broker-{broker}"
            disk.mkdir(parents=True)
            text = f"version=1\nnode.id={broker}\ncluster.id={cluster}\n"
            (disk / "meta.properties").write_text(text)
        total = 0
        for partition, waiting in self.written.items():
            data, records = self._segment(waiting)
            total += records
            for broker in replicas(partition):
                own = folder / f"broker-{broker}" / f"__consumer_offsets-{partition}"
                own.mkdir()
                (own / f"{0:020}.log").write_bytes(data)
        return total

    def _segment(self, waiting: list[tuple[int, int, Written]]) -> tuple[bytes, int]:
        parts: list[bytes] = []
        offset = 0
        for at, _, (records, within) in sorted(waiting, key=lambda written: written[:2]):
            numbered = [
                Record(offset + n, at, key=key, value=value) for n, (key, value) in enumerate(records)
            ]
            first, offset = offset, offset + len(numbered)
            if within is None:
                parts.append(write_batch(numbered, leader_epoch=3))
                continue
            parts.append(
                write_batch(
                    numbered,
                    leader_epoch=3,
                    producer_id=within.producer,
                    producer_epoch=0,
                    base_sequence=0,
                    transactional=True,
                )
            )
            if within.is_open:
                self.opened[within.producer] = first
            else:
                marker = write_control_batch(
                    ControlType.ABORT if within.is_aborted else ControlType.COMMIT,
                    offset=offset,
                    timestamp=at,
                    producer_id=within.producer,
                    producer_epoch=0,
                    coordinator_epoch=1,
                )
                parts.append(marker)
                offset += 1
        return b"".join(parts), offset


@cache
def _key(group: str, topic: str, partition: int) -> bytes:
    return offsets_topic.encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))


@cache
def home(group: str) -> int:
    return partition_for(group, OFFSETS_PARTITIONS)


def coordinator_of(group: str) -> int:
    """The first of its replicas leads a partition."""
    return replicas(home(group))[0]


def replicas(partition: int) -> tuple[int, int]:
    """Of a partition of the offsets topic, on two of three brokers."""
    return BROKERS[partition % 3], BROKERS[(partition + 1) % 3]


def _assignment(seat: Seat) -> clients.Assignment:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in seat.held:
        by_topic.setdefault(topic, []).append(partition)
    return clients.Assignment(
        assigned_partitions=[
            TopicPartitions(topic=topic, partitions=held) for topic, held in by_topic.items()
        ]
    )
