"""A fleet's offsets topic on the disk of one broker, with known truth, for the benchmarks of the pipeline.

Every group commits all of its positions in one batch every five seconds, and each position goes on at a
pace of its own, so that the last offset is known without reading anything. One group in fifty commits in
transactions, one in twenty notes something beside its offsets, each rebalances every two hours. Segments
are cut at 100 MiB, as Kafka does it.

A batch is written once by the codec and then stamped again and again, in compiled code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kelpie.model.partitioning import partition_for
from kelpie.pipeline.decoding.checksums import CRC32C, checksum_of_batch
from kelpie.pipeline.decoding.compiled import compiled
from kelpie.wire import consumer_protocol as clients
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.records import ControlType, Record, write_batch, write_control_batch
from kelpie.wire.structs import TopicPartitions

TOPIC_PARTITIONS = 50
SEGMENT_BYTES = 100 * 1024 * 1024
START_MS, ROUND_MS = 1_790_000_000_000, 5_000
ROUNDS_A_DAY = 86_400_000 // ROUND_MS
REBALANCE_ROUNDS = 1440
_MARK = 0x4B454C5049450000
"""Stands in a template where a number is to be stamped; the last bytes tell which."""
_TIME, _GENERATION = _MARK + 0xFFFF, 0x67656E65

_ENTRY = np.dtype([(word, np.int64) for word in ("start", "size", "records", "first", "every")])
_STAMP = np.dtype([(word, np.int64) for word in ("entry", "place", "width", "first", "step")])


@dataclass(frozen=True, slots=True)
class Fleet:
    """How big, and what is true of it."""

    groups: int = 1000
    partitions: int = 12
    """Of topics, that each group reads."""
    days: float = 0.1

    @property
    def rounds(self) -> int:
        return max(1, round(self.days * ROUNDS_A_DAY))

    @property
    def commits(self) -> int:
        return self.groups * self.partitions * self.rounds

    @property
    def markers(self) -> int:
        return sum(_is_transactional(group) for group in range(self.groups)) * self.rounds

    @property
    def rebalances(self) -> int:
        return sum(
            len(range(group % REBALANCE_ROUNDS, self.rounds, REBALANCE_ROUNDS))
            for group in range(self.groups)
        )

    @property
    def records(self) -> int:
        return self.commits + self.markers + self.rebalances

    def last_offset(self, group: int, partition: int) -> int:
        return _first(group, partition) + _pace(group, partition) * (self.rounds - 1)

    def write(self, folder: Path) -> dict[Path, int]:
        """Folders of partitions, as a broker has them, and the file that names it. Records by segment."""
        folder.mkdir(parents=True)
        (folder / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=a-fleet-for-benchmarks\n")
        here: dict[int, list[int]] = {}
        for group in range(self.groups):
            here.setdefault(partition_for(name(group), TOPIC_PARTITIONS), []).append(group)
        return {
            file: records
            for partition, groups in here.items()
            for file, records in self._write_partition(folder / f"__consumer_offsets-{partition}", groups)
        }

    def _write_partition(self, folder: Path, groups: list[int]) -> Iterator[tuple[Path, int]]:
        folder.mkdir()
        templates = _Templates()
        for group in groups:
            templates.add(group, self.partitions)
        text, entries, stamps = templates.arrays()
        bounds = np.searchsorted(stamps["entry"], np.arange(len(entries) + 1))
        room = np.empty(SEGMENT_BYTES + len(text), np.uint8)
        state = np.zeros(3, np.int64)  # Round, entry, offset.
        while state[0] < self.rounds:
            first = int(state[2])
            crc32c = CRC32C.ctypes.data
            size = _stamp(room, text, entries, stamps, bounds, state, self.rounds, SEGMENT_BYTES, crc32c)
            file = folder / f"{first:020}.log"
            room[:size].tofile(file)
            yield file, int(state[2]) - first


def name(group: int) -> str:
    return f"team-{group % 40}.service-{group:05}"


def topic(group: int, partition: int) -> str:
    return f"events.{group % 97:02}.{'orders' if partition % 2 else 'payments'}"


def _is_transactional(group: int) -> bool:
    return group % 50 == 7


def _first(group: int, partition: int) -> int:
    return 1_000_000 * (group % 1000) + 77 * partition


def _pace(group: int, partition: int) -> int:
    return 1 + (group * 31 + partition * 17) % 5000


@dataclass
class _Templates:
    texts: list[bytes] = field(default_factory=list)
    entries: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    stamps: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def add(self, group: int, partitions: int) -> None:
        every = REBALANCE_ROUNDS
        self._add(write_batch([_rebalance(group)]), 1, [], group % every, every)
        commits = [_commit(group, partition, place) for place, partition in enumerate(range(partitions))]
        linear = [(_first(group, partition), _pace(group, partition)) for partition in range(partitions)]
        if not _is_transactional(group):
            self._add(write_batch(commits, leader_epoch=5), partitions, linear)
            return
        producer: dict[str, Any] = {"producer_id": 4000 + group, "producer_epoch": 0}
        self._add(
            write_batch(commits, leader_epoch=5, base_sequence=0, transactional=True, **producer),
            partitions,
            linear,
        )
        marker = write_control_batch(
            ControlType.COMMIT, offset=0, timestamp=0, coordinator_epoch=1, **producer
        )
        self._add(marker, 1, [])

    def _add(
        self, text: bytes, records: int, linear: list[tuple[int, int]], first: int = 0, every: int = 1
    ) -> None:
        number = len(self.entries)
        self.entries.append((sum(map(len, self.texts)), len(text), records, first, every))
        self.texts.append(text)
        times = [27, 35, *_places(text, _TIME.to_bytes(8, "big"))]
        self.stamps += [(number, place, 8, START_MS, ROUND_MS) for place in times]
        for order, (start, step) in enumerate(linear):
            (place,) = _places(text, (_MARK + order).to_bytes(8, "big"))
            self.stamps.append((number, place, 8, start, step))
        self.stamps += [(number, place, 4, 0, 0) for place in _places(text, _GENERATION.to_bytes(4, "big"))]

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[Any], NDArray[Any]]:
        text = np.frombuffer(b"".join(self.texts), np.uint8)
        return text, np.array(self.entries, _ENTRY), np.array(self.stamps, _STAMP)


def _places(text: bytes, mark: bytes) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _commit(group: int, partition: int, place: int) -> Record:
    key = OffsetCommitKey(group=name(group), topic=topic(group, partition), partition=partition)
    note = f"host-{group % 16}" if group % 20 == 3 else ""
    value = OffsetCommitValue(offset=_MARK + place, leader_epoch=5, metadata=note, commit_timestamp=_TIME)
    return Record(place, 0, key=offsets_topic.encode_key(key), value=offsets_topic.encode_value(value, 3))


def _rebalance(group: int) -> Record:
    read = clients.Subscription(topics=sorted({topic(group, 0), topic(group, 1)}))
    given = clients.Assignment(
        assigned_partitions=[TopicPartitions(topic=topic(group, 0), partitions=list(range(6)))]
    )
    members = [
        MemberMetadata(
            member_id=f"{name(group)}-{number}-6d1b2c1e-0f6a-4f0e-9a55-5d1c1f7a2b{number:02}",
            client_id=f"{name(group)}-{number}",
            client_host=f"/10.0.{group % 250}.{number}",
            rebalance_timeout=300_000,
            session_timeout=45_000,
            subscription=clients.encode(read, 3),
            assignment=clients.encode(given, 3),
        )
        for number in range(3)
    ]
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=_GENERATION,
        protocol="range",
        leader=members[0].member_id,
        current_state_timestamp=_TIME,
        members=members,
    )
    key = offsets_topic.encode_key(GroupMetadataKey(group=name(group)))
    return Record(0, 0, key=key, value=offsets_topic.encode_value(value, 3))


@compiled
def _put(out, at, value, width):  # type: ignore[no-untyped-def]
    for place in range(width):
        out[at + place] = np.uint8((value >> (8 * (width - 1 - place))) & 0xFF)


@compiled
def _stamp(out, text, entries, stamps, bounds, state, rounds, limit, crc32c):  # type: ignore[no-untyped-def] # noqa: PLR0917
    at = 0
    while state[0] < rounds:
        while state[1] < len(entries):
            number = state[1]
            entry = entries[number]
            if state[0] % entry["every"] == entry["first"]:
                if at + entry["size"] > limit:
                    return at
                for place in range(entry["size"]):
                    out[at + place] = text[entry["start"] + place]
                for stamp in stamps[bounds[number] : bounds[number + 1]]:
                    value = stamp["first"] + stamp["step"] * state[0]
                    if stamp["width"] == 4:
                        value = 1 + state[0] // entry["every"]
                    _put(out, at + stamp["place"], value, stamp["width"])
                _put(out, at, state[2], 8)
                begin = np.int64(out.ctypes.data) + at
                _put(out, at + 17, checksum_of_batch(begin + 21, begin + entry["size"], crc32c), 4)
                state[2] += entry["records"]
                at += entry["size"]
            state[1] += 1
        state[1] = 0
        state[0] += 1
    return at
