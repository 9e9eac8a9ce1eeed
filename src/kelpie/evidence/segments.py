"""Log segments off the disks of brokers, running or dead: commits, generations, and where logs end.

The path must name the partition: by the folder that Kafka made ("__consumer_offsets-25"), or in the name of
the file ("broker2-__consumer_offsets-25-00000000000000000000.log"). Of the offsets topic every record is
read. Of other topics only the headers of the batches in the newest segment are read: they say where the log
ends.

A record that several replicas have (same partition, offset and content) counts once. Where replicas differ,
as after an unclean election, the records of each count.
"""

import mmap
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kelpie.evidence.files import HEAD_SIZE, EvidenceFile
from kelpie.evidence.unreadable import unreadable
from kelpie.model.names import TopicPartition
from kelpie.model.time import plausible
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Commit,
    Generation,
    GroupState,
    LogEnds,
    Observations,
    Unasked,
)
from kelpie.observations.groups import UNTOLD
from kelpie.observations.offsets_topic import OffsetsPartition, Placed, add_row
from kelpie.wire.malformed import Malformed
from kelpie.wire.offsets_topic import OtherKey, decode_key
from kelpie.wire.records import read_batches

_PARTITION_FOLDER = re.compile(
    r"^([a-zA-Z0-9._-]{1,249})-(\d{1,9})(?:\.[0-9a-zA-Z]+-(?:delete|future|stray))?$"
)
_OFFSETS_PARTITION = re.compile(re.escape(OFFSETS_TOPIC) + r"-(\d{1,9})(?!\d)")
_BASE_OFFSET = re.compile(r"(?<!\d)(\d{20})(?!\d)")
_BROKER = re.compile(
    r"(?i)^(?:.*[^a-z])?(?:broker|kafka|node|server)(?:-?(?:logs|data|id))?[-_. ]?(\d{1,9})(?:[-_. ].*)?\Z",
    re.DOTALL,
)
_NO_USE = frozenset({"__cluster_metadata"})
_PIECE = 1 << 20
_LARGEST_READ = 256 * 1024 * 1024
_MOST_COMPARED = 10
"""Replicas of a segment whose bytes are compared. Of more, records are read and compared."""
_UNKNOWN_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Segment:
    """One file, and what its path says of it."""

    file: EvidenceFile
    topic: str
    partition: int
    """-1: unknown."""
    base_offset: int
    disk: str
    """The folder, or the broker in a flat name, that distinguishes replicas."""
    broker: int | None


def is_segment(head: bytes) -> bool:
    """Whether a file begins with a whole record batch, or with one that is cut off by the end of `head`."""
    batches = read_batches(head)
    try:
        return next(batches, None) is not None or (
            batches.torn is not None
            and batches.torn.needed is not None
            and head[16] <= 2
            and head[:1] < b"\x01"
        )
    except Malformed:
        return False


def describe_segment(file: EvidenceFile, disks: Mapping[str, int]) -> Segment:
    """What the path of a segment says. `disks`: folder → node id, from meta.properties."""
    folders = file.folder.split("/") if file.folder else []
    base = _BASE_OFFSET.search(file.base)
    topic, partition, disk = "", _UNKNOWN_PARTITION, file.folder
    named = _PARTITION_FOLDER.match(folders[-1]) if folders else None
    flat = _OFFSETS_PARTITION.search(file.base)
    if flat is not None:
        topic, partition = OFFSETS_TOPIC, int(flat[1])
        disk = file.folder + "/" + file.base[: flat.start()]
    elif named is not None:
        topic, partition = named[1], int(named[2])
    elif _holds_offsets(file.head or _head(file)):
        topic = OFFSETS_TOPIC
    return Segment(file, topic, partition, int(base[1]) if base else 0, disk, _broker_of(file, disks))


def read_segments(
    segments: Iterable[Segment], topic_names: dict[bytes, str], *, most: int = sys.maxsize
) -> Observations:
    """All rows of all segments, up to `most`. `topic_names` is used, and grows."""
    observations = Observations()
    by_partition: dict[TopicPartition, dict[str, list[Segment]]] = defaultdict(lambda: defaultdict(list))
    for segment in segments:
        if segment.topic in _NO_USE:
            continue
        if not segment.topic:
            reason = "It is a log segment, and neither its folder nor its name says of which partition."
            observations.unasked.append(Unasked("file", segment.file.name, reason, source=segment.file.name))
            continue
        by_partition[TopicPartition(segment.topic, segment.partition)][segment.disk].append(segment)
        add_broker(observations, segment)
    for name, disks in sorted(by_partition.items()):
        ordered = sorted(disks.values(), key=lambda disk: -sum(segment.file.size for segment in disk))
        for replica in ordered:
            replica.sort(key=lambda segment: (segment.base_offset, segment.file.name))
        if name.topic == OFFSETS_TOPIC:
            _read_offsets_partition(name, ordered, topic_names, observations, most)
        else:
            observations.ends += [_end_of(name, replica, observations) for replica in ordered]
    # The last one counts: without times, that must be the longest replica.
    observations.ends.sort(key=lambda end: (end.topic, end.partition, end.at or -1, end.latest))
    return observations


def log_ends(segments: Iterable[Segment]) -> Observations:
    """Where the logs of these segments end, disk by disk, without their records; and whose disks they are."""
    observations = Observations()
    replicas: dict[tuple[str, int, str], list[Segment]] = defaultdict(list)
    for segment in segments:
        if segment.topic and segment.topic not in _NO_USE and segment.partition >= 0:
            replicas[segment.topic, segment.partition, segment.disk].append(segment)
            add_broker(observations, segment)
    for (topic, partition, _), replica in sorted(replicas.items()):
        replica.sort(key=lambda segment: (segment.base_offset, segment.file.name))
        observations.ends.append(_end_of(TopicPartition(topic, partition), replica, observations))
    return observations


def _read_offsets_partition(
    name: TopicPartition,
    replicas: Sequence[list[Segment]],
    topic_names: dict[bytes, str],
    observations: Observations,
    most: int,
) -> None:
    seen: set[object] = set()
    read: dict[int, list[Segment]] = defaultdict(list)
    for replica in replicas:
        partition = OffsetsPartition(topic_names)
        last_written = -1
        for segment in replica:
            content = _content(segment.file, observations)
            of_same_offset = read[segment.base_offset]
            if any(_is_beginning_of(segment, other) for other in of_same_offset):
                last_written = max(last_written, _skim(content, partition))
                continue
            for placed in partition.read(content, segment.file.name):
                if len(observations.commits) + len(observations.generations) >= most:
                    observations.unasked.append(_too_many(segment))
                    break
                if len(replicas) > 1 and _repeated(placed, seen):
                    continue
                add_row(observations, placed.row)
                if isinstance(placed.row, Commit) and placed.row.at is not None:
                    last_written = max(last_written, placed.row.at)
            if len(of_same_offset) < _MOST_COMPARED:
                of_same_offset.append(segment)
        for group, (kind, source) in partition.other_groups.items():
            observations.known_groups.setdefault(group, source)
            observations.states.append(GroupState(group, UNTOLD, kind, source=source))
        if partition.next_offset is not None and name.partition >= 0:
            observations.ends.append(_ends(name, replica, partition.next_offset, last_written))


def _too_many(segment: Segment) -> Unasked:
    name = segment.file.name
    reason = (
        "The rest of it is left out: there are more rows than are held in memory. Use kelpie pipeline run."
    )
    return Unasked("file", name, reason, source=name)


def _skim(content: memoryview, partition: OffsetsPartition) -> int:
    """Skips what another replica has shown already; only its end and the end's time are read."""
    newest = -1
    try:
        for batch in read_batches(content, crc=False):
            partition.next_offset = batch.header.next_offset
            newest = max(newest, plausible(batch.header.max_timestamp) or -1)
    except Malformed:
        pass  # The replica that was read in full has reported it.
    return newest


def _end_of(name: TopicPartition, replica: Sequence[Segment], observations: Observations) -> LogEnds:
    next_offset, newest = replica[-1].base_offset, -1
    try:
        for batch in read_batches(_content(replica[-1].file, observations), crc=False):
            next_offset = batch.header.next_offset
            newest = max(newest, plausible(batch.header.max_timestamp) or -1)
    except Malformed as malformed:
        file = replica[-1].file.name
        reason = f"From byte {malformed.offset} on: {malformed.reason}."
        observations.unasked.append(Unasked("file", file, reason, source=file))
    return _ends(name, replica, next_offset, newest)


def _ends(name: TopicPartition, replica: Sequence[Segment], next_offset: int, newest: int) -> LogEnds:
    at = newest if newest >= 0 else None
    return LogEnds(
        name.topic,
        name.partition,
        replica[0].base_offset,
        next_offset,
        last_written=at,
        at=at,
        source=replica[-1].file.name,
    )


def _repeated(placed: Placed, seen: set[object]) -> bool:
    """Whether another replica has shown this row. Sources differ, so they are not compared."""
    row = placed.row
    if isinstance(row, Unasked):
        return False
    content: object
    if isinstance(row, Commit):
        content = (placed.offset, row._replace(source=""))
    else:
        content = (placed.offset, row.group, row.generation if isinstance(row, Generation) else None)
    if content in seen:
        return True
    seen.add(content)
    return False


def _is_beginning_of(short: Segment, long: Segment) -> bool:
    """Whether the bytes of one are how the other begins: then it has nothing to add."""
    if short.file.size > long.file.size:
        return False
    try:
        with short.file.path.open("rb") as one, long.file.path.open("rb") as other:
            while piece := one.read(_PIECE):
                if other.read(len(piece)) != piece:
                    return False
    except OSError:
        return False
    return True


def _content(file: EvidenceFile, observations: Observations) -> memoryview:
    """The bytes of a file. Only very large files are mapped: a reader dies if a mapped file is shortened."""
    try:
        with file.path.open("rb") as opened:
            if file.size > _LARGEST_READ and isinstance(file.path, Path):
                return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
            return memoryview(opened.read(file.size))
    except OSError as error:
        observations.unasked.append(Unasked("file", file.name, unreadable(error), source=file.name))
    except ValueError:
        pass  # It has just become empty.
    return memoryview(b"")


def _head(file: EvidenceFile) -> bytes:
    """The first bytes, for a file that was not kept with them: there may be very many files."""
    try:
        with file.path.open("rb") as opened:
            return opened.read(HEAD_SIZE)
    except OSError:
        return b""


def _holds_offsets(head: bytes) -> bool:
    """Whether the first records are of the offsets topic: for files whose path does not say it."""
    try:
        batch = next(read_batches(head), None)
        keys = [decode_key(record.key) for record in islice(batch.records(), 10)] if batch is not None else []
    except Malformed:
        return False
    return bool(keys) and not any(isinstance(key, OtherKey) and not key.group_id for _, key in keys)


def _broker_of(file: EvidenceFile, disks: Mapping[str, int]) -> int | None:
    """Whose disk it is, by meta.properties, or else by the names on the path, the nearest first."""
    folder = file.folder
    while folder:
        if folder in disks:
            return disks[folder]
        folder = folder.rpartition("/")[0]
    if "" in disks:
        return disks[""]
    *folders, base = file.name.split("/")
    if folders and _PARTITION_FOLDER.match(folders[-1]) and not _BASE_OFFSET.sub("", base).strip(".log"):
        folders.pop()  # "server-3" may be a topic's name.
    for part in (base, *reversed(folders)):
        named = _BROKER.match(part)
        if named is not None:
            return int(named[1])
    return None


def add_broker(observations: Observations, segment: Segment) -> None:
    """Adds the broker of a disk. Whether it is alive is not known."""
    if segment.broker is None or segment.topic in _NO_USE:
        return
    if all(broker.node_id != segment.broker for broker in observations.brokers):
        observations.brokers.append(BrokerView(segment.broker, source=segment.disk))
