"""Drives one coordinator shard on the broker that leads its partition.

The shard decides; this carries it out. Records go to the partition's log; once the high watermark has passed
them they are replayed into the shard and the replies leave (Kafka's CoordinatorRuntime does the same). A
write that is not committed within offsets.commit.timeout.ms has failed for the calls that wait, though it
may still be committed later, as in Kafka. Loading is replay of the log from its beginning.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

from kelpie.broker.host import Host
from kelpie.broker.log import AppendRefusal
from kelpie.broker.replica import Lost, Replica
from kelpie.coordinator.notes import NoteKind, note
from kelpie.coordinator.outcome import Outcome
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.records import BatchHeader, ControlType, Record, write_batch, write_message_set


class ShardHost:
    """A shard that is loading, active, or gone."""

    def __init__(self, broker: Host, replica: Replica, shard: Any, epoch: int) -> None:
        self._broker = broker
        self._replica = replica
        self._timers: set[Hashable] = set()
        self._writes: dict[Hashable, Lost] = {}
        """Writes that are not committed yet, and how to fail the calls that wait for them."""
        self.shard = shard
        self.epoch = epoch
        self.active = False
        self._began: Instant | None = None

    def begin(self, now: Instant) -> None:
        """It is to load, now or after a while."""
        self._began = now
        self._tell(NoteKind.LOADING, now)

    def load(self, now: Instant) -> None:
        """Replays the log. From then on the shard answers."""
        log = self._replica.log
        records = size = 0
        for batch in log.batches_from(log.start_offset):
            size += batch.size
            producer = batch.header.producer_id if isinstance(batch.header, BatchHeader) else -1
            if batch.header.is_control:
                for marker in batch.control_records():
                    if marker.type in (ControlType.COMMIT, ControlType.ABORT):
                        self.ended(producer, committed=marker.type is ControlType.COMMIT)
                continue
            transactional = batch.header.is_transactional
            for record in batch.records():
                records += 1
                if record.key is not None:
                    self._replay(record.key, record.value, record.offset, producer if transactional else -1)
        self.active = True
        self.carry_out(self.shard.loaded(now), now)
        took_ms = now - (self._began if self._began is not None else now)
        self._tell(NoteKind.LOADED, now, records=records, bytes=size, ms=took_ms)

    def _replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        self.shard.replay(key, value, offset=offset, producer_id=producer_id)

    def ended(self, producer_id: int, *, committed: bool) -> None:
        """A transaction that wrote here has ended."""
        self.shard.replay_marker(producer_id, committed)

    def unload(self, now: Instant) -> None:
        """Another broker leads now, or this one in a new epoch. Waiting calls get NOT_COORDINATOR."""
        self._clear_timers()
        for lost in list(self._writes.values()):
            lost(ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
        if self.active:
            self.active = False
            self._tell(NoteKind.UNLOADING, now)
            gone = self.shard.unloaded()
            self._broker.tell(self._replica.partition, gone.notes, now)
            self._tell(NoteKind.UNLOADED, now)
            for reply in (*gone.at_once, *gone.replies):
                reply.to.answer(reply.response)

    def _tell(self, what: NoteKind, now: Instant, **values: Any) -> None:
        written = note(what, topic=self._replica.partition.topic, epoch=self.epoch, **values)
        self._broker.tell(self._replica.partition, (written,), now)

    def carry_out(self, outcome: Outcome, now: Instant) -> None:
        if outcome.notes:
            self._broker.tell(self._replica.partition, outcome.notes, now)
        for timer in outcome.timers:
            self._set_timer(timer.key, timer.at)
        for reply in outcome.at_once:
            reply.to.answer(reply.response)
        if outcome.records:
            self._write(outcome, now)
        else:
            self._finish(outcome, now)

    def _finish(self, outcome: Outcome, now: Instant) -> None:
        if outcome.written is not None:
            self.carry_out(outcome.written(now), now)
        for reply in outcome.replies:
            reply.to.answer(reply.response)

    def _write(self, outcome: Outcome, now: Instant) -> None:
        replica = self._replica
        settings = self._broker.settings
        refused = self._broker.refuses_write(replica)
        if refused is not None:
            self._fail(outcome, refused, now)
            return
        producer_id, producer_epoch = outcome.producer or (-1, -1)
        first = replica.log.end_offset
        records = [
            Record(offset=index, timestamp=now, key=record.key, value=record.value)
            for index, record in enumerate(outcome.records)
        ]
        if self._broker.persona.magic < 2:
            batch = write_message_set(records, magic=self._broker.persona.magic)
        else:
            batch = write_batch(
                records,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=outcome.sequence,
                transactional=outcome.producer is not None,
            )
        appended = replica.log.append_batch(
            batch,
            leader_epoch=replica.leader_epoch,
            now=now,
            config=self._broker.log_config(replica.partition),
        )
        if isinstance(appended, AppendRefusal):
            self._fail(outcome, appended.error_code, now)
            return
        end = replica.log.end_offset
        key = ("write", replica.partition, end)
        waiting = True

        def committed(at: Instant) -> None:
            nonlocal waiting
            self._broker.timers.cancel(key)
            self._writes.pop(key, None)
            for index, record in enumerate(outcome.records):
                self._replay(record.key, record.value, first + index, producer_id)
            if waiting and self.active:
                waiting = False
                self._finish(outcome, at)

        def lost(code: ErrorCode, at: Instant) -> None:
            nonlocal waiting
            self._broker.timers.cancel(key)
            self._writes.pop(key, None)
            if waiting:
                waiting = False
                self._fail(outcome, code, at)

        def late(at: Instant) -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                self._fail(outcome, ErrorCode.REQUEST_TIMED_OUT, at)

        self._writes[key] = lost
        self._broker.timers.set(key, now + settings.number("offsets.commit.timeout.ms"), late)
        replica.when_committed(end, committed, lost, now)
        self._broker.appended(replica, now)

    def _fail(self, outcome: Outcome, code: ErrorCode, now: Instant) -> None:
        if outcome.failed is not None:
            self.carry_out(outcome.failed(code, now), now)

    def _set_timer(self, key: Hashable, at: Instant | None) -> None:
        name = ("shard", self._replica.partition, key)
        if at is None:
            self._broker.timers.cancel(name)
            self._timers.discard(name)
            return
        self._timers.add(name)

        def run(now: Instant) -> None:
            self._timers.discard(name)
            if self.active:
                self.carry_out(self.shard.timer(key, now), now)

        self._broker.timers.set(name, at, run)

    def _clear_timers(self) -> None:
        for name in self._timers:
            self._broker.timers.cancel(name)
        self._timers.clear()


class CoordinatorService(ABC):
    """The coordinator of one broker: a shard for each partition of its topic that the broker leads."""

    topic: str

    def __init__(self, broker: Host) -> None:
        self._broker = broker
        self.hosts: dict[int, ShardHost] = {}

    def follow_image(self, now: Instant) -> None:
        """Begins and ends to coordinate as leadership comes and goes."""
        topic = self._broker.image.topic(self.topic)
        leading = {
            index: replica
            for index in range(len(topic.partitions) if topic else 0)
            if (replica := self._broker.replicas.get(TopicPartition(self.topic, index))) and replica.leads
        }
        for index in sorted(self.hosts.keys() | leading.keys()):
            replica, host = leading.get(index), self.hosts.get(index)
            if host is not None and (replica is None or host.epoch != replica.leader_epoch):
                self.hosts.pop(index).unload(now)
            if replica is not None and index not in self.hosts:
                self._begin(index, replica, now)

    @abstractmethod
    def _begin(self, index: int, replica: Replica, now: Instant) -> None:
        """Begins to coordinate the partition with this index."""
