"""From records of `__consumer_offsets` to rows: commits, generations, removed groups.

Where the bytes are from does not matter: a segment file and the answer to a fetch hold the same batches.
One `OffsetsPartition` reads one partition, buffer after buffer, in the order of offsets, and keeps what a
later buffer may need: transactions that are still open, and the members of KIP-848 groups. Everything
streams: a row is handed out as soon as it is certain.

- Transactional commits count when their commit marker is there; aborted ones never, open ones not yet.
- A null key, an unreadable record or an unused record type: that record is skipped. A torn end or a wrong
  checksum: the rest of that buffer is skipped. Both give `Unasked` rows of kind "file".
- Kafka 0.9 wrote no times beside its records. Where a record has none of its own, `at` is the time of the
  newest commit before it in the same partition, and None if there is none. So it is for a time that cannot
  be: before 1970, or after 2100.
"""

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant, plausible
from kelpie.observations.cluster import Unasked
from kelpie.observations.collection import Observations
from kelpie.observations.encoding import add, kind_of
from kelpie.observations.group_epochs import GroupEpochs, OffsetsRecord, topic_id_text
from kelpie.observations.group_offsets import GroupCommits
from kelpie.observations.groups import SHARE, STREAMS, Generation, GroupRemoved, Member
from kelpie.observations.open_transactions import OpenTransactions, Place
from kelpie.observations.positions import NO_OFFSET, Commit, PendingCommit
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE, decode_subscription, partitions_in
from kelpie.wire.malformed import Malformed, TooLarge
from kelpie.wire.offsets_topic import OtherKey, RecordType, decode_key, decode_value
from kelpie.wire.offsets_topic.commit_batch import CommitBatches
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataValue, MemberMetadata
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitValue
from kelpie.wire.offsets_topic.plain_commit import Places, PlainCommit, read_plain_commit
from kelpie.wire.records import BatchHeader, Codec, ControlType, Record, RecordBatch, read_batches
from kelpie.wire.records.attributes import CODEC_MASK, CONTROL_MASK, TRANSACTIONAL_MASK
from kelpie.wire.records.header import HEADER_SIZE, codec_of
from kelpie.wire.schema import NO_UUID

Row = Commit | Generation | GroupRemoved | Unasked
Topics = tuple[str, ...]
Partitions = tuple[TopicPartition, ...]

_COMMITS = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)
_LARGEST_INFLATED = 256 * 1024 * 1024
_MOST_INFLATED = 1 << 30
"""Of all batches of a partition that are compressed: a kilobyte may be a megabyte of rows."""
_NOT_PLAIN = CODEC_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
_ROW_BYTES = 48
"""What a row costs at least, however few bytes its record has."""


def cost_of(batch: RecordBatch, most: int) -> int:
    """How many bytes the records of a batch come to when they are inflated, rows without content included.

    Raises Malformed; TooLarge when they are more than `most`.
    """
    header = batch.header
    count = header.record_count if isinstance(header, BatchHeader) else 1
    size = batch.size
    if codec_of(header.attributes) is not Codec.NONE:
        size = 0
        for record in batch.records(inflated_limit=most):
            size += _ROW_BYTES + len(record.key or b"") + len(record.value or b"")
    cost = max(size, _ROW_BYTES * count)
    if cost > most:
        raise TooLarge(f"its records come to more than {most} bytes", offset=batch.position)
    return cost


_EPOCHS_OF_OTHERS = (RecordType.SHARE_GROUP_METADATA, RecordType.STREAMS_GROUP_METADATA)
_OTHER_KINDS: dict[int, str] = {
    record_type.value: kind
    for record_type in RecordType
    for name, kind in (("SHARE_GROUP_", SHARE), ("STREAMS_GROUP_", STREAMS))
    if record_type.name.startswith(name)
}


class _Together(NamedTuple):
    """Partitions of one topic; texts for each of them."""

    names: Partitions
    metadata: tuple[str, ...]
    topic_ids: tuple[str, ...]


class OtherGroup(NamedTuple):
    kind: str
    """SHARE or STREAMS."""
    source: str


class Placed(NamedTuple):
    """A row, and the offset of the record that it is from; NO_OFFSET for what is about a whole buffer."""

    offset: int
    row: Row

    @property
    def place(self) -> Place | None:
        """What a commit is for; None for other rows."""
        return self.row[:3] if isinstance(self.row, Commit) else None


@dataclass(slots=True)
class _Unread:
    """Records of a buffer that cannot be read: there may be very many."""

    count: int = 0
    first: str = ""

    def note(self, offset: int, malformed: Malformed) -> None:
        self.count += 1
        if self.count == 1:
            self.first = f"offset {offset}: {malformed}"


class OffsetsPartition:
    """One partition of the offsets topic, read in the order of offsets."""

    def __init__(self, topic_names: MutableMapping[bytes, str] | None = None) -> None:
        """`topic_names`: what is known of topic ids; it grows with what is read, and may be shared."""
        self._names = topic_names if topic_names is not None else {}
        self._epochs = GroupEpochs(self._names)
        self._pending: OpenTransactions[Placed] = OpenTransactions()
        self._producer_epochs: dict[int, int] = {}
        self._newest: Instant | None = None
        self._id_texts = {NO_UUID: ""}
        """Ids of topics as text: most commits have one of a few."""
        self.other_groups: dict[str, OtherGroup] = {}
        """Share groups and groups of the Streams protocol that have records here; no more is read of them."""
        self._places: Places = {}
        self._batches = CommitBatches()
        self._together: dict[tuple[str, tuple[int, ...], bytes], _Together] = {}
        """What was committed together: the next request mostly names the same."""
        self._inflated_left = _MOST_INFLATED
        self.next_offset: int | None = None
        """Behind the last batch that was read."""

    @property
    def open_transactions(self) -> int:
        """How many producers have written commits that are neither committed nor aborted so far."""
        return len(self._pending)

    @property
    def pending_commits(self) -> list[PendingCommit]:
        """The commits of transactions that are still open behind the last batch that was read."""
        return [
            PendingCommit(*row[:4], producer_id, self._producer_epochs[producer_id], row.at, row.source)
            for producer_id, (_, row) in self._pending
            if isinstance(row, Commit)
        ]

    def read(self, buffer: bytes | bytearray | memoryview, source: str) -> Iterator[Placed]:
        """The rows of one buffer: a segment file, or the records of a fetch. Never raises Malformed."""
        for read in self.read_runs(buffer, source):
            if isinstance(read, GroupCommits):
                yield from map(Placed, read.numbers, read.rows)
            else:
                yield read

    def read_runs(
        self, buffer: bytes | bytearray | memoryview, source: str
    ) -> Iterator[Placed | GroupCommits]:
        """The same, with what a group committed by one request as one row where that is how it was read."""
        reasons: list[str] = []
        unread = _Unread()
        batches = read_batches(buffer)
        try:
            for batch in batches:
                if self.next_offset is None or batch.header.last_offset >= self.next_offset:
                    commits = self._commits_of(batch, source)
                    if commits is not None:
                        yield commits
                    else:
                        yield from self._batch(batch, source, unread)
                    self.next_offset = batch.header.next_offset
        except Malformed as malformed:
            reasons.append(f"From byte {malformed.offset} on: {malformed.reason}.")
        if batches.torn is not None:
            reasons.append(f"From byte {batches.torn.position} on, no whole batch: {batches.torn.reason}.")
        if unread.count:
            reasons.append(f"{unread.count} records cannot be read; the first: {unread.first}.")
        for reason in reasons:
            yield Placed(NO_OFFSET, Unasked("file", source, reason, source=source))

    def _commits_of(self, batch: RecordBatch, source: str) -> GroupCommits | None:
        """Of most batches: all records at once. None: they are to be read one by one."""
        header = batch.header
        if not isinstance(header, BatchHeader) or header.attributes & _NOT_PLAIN or header.record_count < 1:
            return None
        columns = self._batches.read(batch.data[HEADER_SIZE:], header.record_count)
        if columns is None or columns.timestamps.count(columns.timestamps[0]) < header.record_count:
            return None
        group, topic, partitions, offsets, epochs, timestamps, places, topic_id = columns
        known = self._together.get((topic, partitions, topic_id))
        if known is None:
            names = tuple(TopicPartition(topic, partition) for partition in partitions)
            none, text = ("",) * len(names), topic_id_text(topic_id) if topic_id != NO_UUID else ""
            known = _Together(names, none, (text,) * len(names))
            self._together[topic, partitions, topic_id] = known
            if text:
                self._names[topic_id] = topic
        names, metadata, topic_ids = known
        first = header.base_offset
        numbers = (
            range(first, first + len(places))
            if isinstance(places, range)
            else [first + each for each in places]
        )
        at = self._time_of_commit(timestamps[0])
        # By C alone: the constructor of a named tuple would be a call of a Python function.
        row = (group, names, offsets, epochs, metadata, topic_ids, at, False, source, numbers)
        return tuple.__new__(GroupCommits, row)

    def _batch(self, batch: RecordBatch, source: str, unread: _Unread) -> Iterator[Placed]:
        header = batch.header
        if header.is_control:
            for marker in batch.control_records():
                if marker.type is ControlType.COMMIT:
                    yield from self._pending.end(header.producer_id)
                elif marker.type is ControlType.ABORT:
                    self._pending.end(header.producer_id)
            return
        records = self._inflated(batch)
        if header.is_transactional:
            self._pending.write(header.producer_id, self._rows(records, source, unread, True))
            self._producer_epochs[header.producer_id] = header.producer_epoch
            return
        yield from self._written(records, source, unread)

    def _inflated(self, batch: RecordBatch) -> Iterable[Record]:
        if codec_of(batch.header.attributes) is Codec.NONE:
            return batch.records()
        left = min(self._inflated_left, _LARGEST_INFLATED)
        records = list(batch.records(inflated_limit=left))
        cost = sum(_ROW_BYTES + len(record.key or b"") + len(record.value or b"") for record in records)
        self._inflated_left -= cost
        if self._inflated_left < 0:
            reason = f"the compressed records of the partition come to more than {_MOST_INFLATED} bytes"
            raise TooLarge(reason, offset=batch.position)
        return records

    def _written(self, records: Iterable[Record], source: str, unread: _Unread) -> Iterator[Placed]:
        converted = self._epochs.begin_batch()
        placed_rows = self._rows(records, source, unread, False)
        if not converted:
            yield from placed_rows
        else:
            # A classic group that becomes one of KIP-848 is deleted and made anew in one write.
            for placed in placed_rows:
                if not (isinstance(placed.row, GroupRemoved) and placed.row.group in converted):
                    yield placed
        for offset, generation in self._epochs.end_batch(source):
            yield Placed(offset, generation)

    def _rows(
        self, records: Iterable[Record], source: str, unread: _Unread, transactional: bool
    ) -> list[Placed]:
        rows: list[Placed] = []
        for record in records:
            offset = record.offset
            plain = read_plain_commit(record.key, record.value, self._places)
            row: Row | None
            if plain is not None:  # Nearly all records.
                row = self._plain_commit(plain, f"{source}@{offset}", transactional)
            else:
                try:
                    row = self._record(record, source, transactional)
                except Malformed as malformed:
                    unread.note(offset, malformed)
                    continue
            if row is not None:
                rows.append(tuple.__new__(Placed, (offset, row)))
        return rows

    def _record(self, record: Record, source: str, transactional: bool) -> Row | None:
        where = f"{source}@{record.offset}"
        record_type, key = decode_key(record.key)
        value = decode_value(record_type, record.value)
        at = self._time(record, value)
        if record_type in _COMMITS:
            return self._commit(key, value, at, where, transactional)
        if record_type == RecordType.GROUP_METADATA:
            if value is None:
                return GroupRemoved(key.group, at, where)
            return _generation(key.group, value, at, where)
        if isinstance(key, OtherKey):
            return self._other_group(key, value, at, where)
        return self._epochs.record(OffsetsRecord(record_type, key, value, record.offset, at, where))

    def _other_group(self, key: OtherKey, value: Any, at: Instant | None, where: str) -> GroupRemoved | None:
        """The group is gone when the record of its epoch is removed."""
        kind = _OTHER_KINDS.get(key.record_type, "")
        if not kind or not key.group_id:
            return None
        if value is not None:
            self.other_groups.setdefault(key.group_id, OtherGroup(kind, where))
        elif key.record_type in _EPOCHS_OF_OTHERS:
            self.other_groups.pop(key.group_id, None)
            return GroupRemoved(key.group_id, at, where)
        return None

    def _time(self, record: Record, value: Any) -> Instant | None:
        if isinstance(value, OffsetCommitValue):
            return self._time_of_commit(value.commit_timestamp)
        at = plausible(record.timestamp)
        return self._newest if at is None else at

    def _time_of_commit(self, stamp: int) -> Instant | None:
        at = plausible(stamp)
        if at is None:
            return self._newest
        if self._newest is None or at > self._newest:
            self._newest = at
        return at

    def _plain_commit(self, plain: PlainCommit, where: str, transactional: bool) -> Commit:
        group, topic, partition, offset, epoch, metadata, timestamp, topic_id = plain
        at = self._time_of_commit(timestamp)
        id_text = self._id_text(topic_id, topic)
        # By C alone: the constructor of a named tuple would be a call of a Python function.
        return tuple.__new__(
            Commit,
            (group, topic, partition, offset, at, epoch, metadata, None, transactional, where, id_text),
        )

    def _id_text(self, topic_id: bytes, topic: str) -> str:
        text = self._id_texts.get(topic_id)
        if text is None:
            text = self._id_texts[topic_id] = topic_id_text(topic_id)
        if text:
            self._names[topic_id] = topic
        return text

    def _commit(
        self, key: Any, value: OffsetCommitValue | None, at: Instant | None, where: str, transactional: bool
    ) -> Commit:
        if value is None:
            if not transactional:
                # An offset that is deleted takes along what open transactions have written for it.
                self._pending.forget((key.group, key.topic, key.partition))
            return Commit(
                key.group, key.topic, key.partition, NO_OFFSET, at, transactional=transactional, source=where
            )
        if value.topic_id != NO_UUID:
            self._names[value.topic_id] = key.topic
        return Commit(
            key.group,
            key.topic,
            key.partition,
            value.offset,
            at,
            value.leader_epoch,
            value.metadata,
            plausible(value.expire_timestamp),
            transactional,
            where,
            topic_id_text(value.topic_id) if value.topic_id != NO_UUID else "",
        )


def add_row(observations: Observations, row: Row) -> None:
    """Puts a row where it belongs; a group that has one is known from there."""
    if isinstance(row, Commit):
        observations.commits.append(row)
        if row.group not in observations.known_groups:
            observations.known_groups[row.group] = row.source
        return
    add(observations, kind_of(row), row)
    if not isinstance(row, Unasked):
        observations.known_groups.setdefault(row.group, row.source)


def read_blobs(subscription: bytes, assignment: bytes) -> tuple[Topics | None, Partitions | None]:
    """Topics and partitions from a member's bytes; None if they are missing, or not in the consumer protocol.

    Some clients call their own bytes "consumer"; Kafka does not look at them either.
    """
    subscribed = assigned = None
    try:
        subscribed = tuple(decode_subscription(subscription)[1].topics) if subscription else None
        assigned = tuple(partitions_in(assignment))
    except Malformed:
        pass
    return subscribed, assigned


def _generation(group: str, value: GroupMetadataValue, at: Instant | None, where: str) -> Generation:
    consumers = value.protocol_type == PROTOCOL_TYPE
    return Generation(
        group,
        value.generation,
        tuple(_member(member, consumers) for member in value.members),
        value.protocol_type,
        value.protocol or "",
        value.leader or "",
        at,
        where,
    )


def _member(member: MemberMetadata, consumers: bool) -> Member:
    # Only consumers fill the bytes in the same way, and not Kafka Connect.
    blobs = read_blobs(member.subscription, member.assignment) if consumers else (None, None)
    return Member(
        member.member_id,
        member.client_id,
        member.client_host,
        member.group_instance_id,
        *blobs,
        member.session_timeout,
        # Before 0.10.1 there was none: the coordinator waited for the session timeout.
        member.rebalance_timeout if member.rebalance_timeout >= 0 else member.session_timeout,
    )
