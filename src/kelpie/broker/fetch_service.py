"""Fetch requests on one broker: what they get now, and those that wait for more.

A request is answered when there are as many bytes as it asked for, when a partition has an error, or when its
time is over. Until then it waits with the partitions it reads, and is tried again when one of them moves on.
"""

from kelpie.broker.call import Call
from kelpie.broker.fetch_sessions import FINAL, NEW, Asked, Place, Session, Sessions
from kelpie.broker.host import Host
from kelpie.broker.log import AppendRefusal, ReadResult, down_convert
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import fetch as wire
from kelpie.wire.structs import LeaderIdAndEpoch, NodeEndpoint

READ_COMMITTED = 1
SMALLEST_MAGIC_2 = 4
"""Older versions of Fetch cannot read batches of magic 2: they get them converted."""
BY_ID = 13
NAMES_LEADER = 16


class FetchService:
    def __init__(self, broker: Host) -> None:
        self._broker = broker
        self._waiting: dict[TopicPartition, set[Waiting]] = {}
        slots = broker.settings.number("max.incremental.fetch.session.cache.slots")
        self.sessions = Sessions(slots, broker.links.new_id)

    def fetch(self, call: Call, now: Instant) -> None:
        request: wire.FetchRequest = call.message
        by_id = call.version >= BY_ID
        session: Session | None = None
        if request.session_epoch in (NEW, FINAL):
            self.sessions.close(request.session_id)
            partitions = _named(request, by_id)
            if request.session_epoch == NEW:
                session = self.sessions.open(partitions, by_id, now)
            Waiting(self, call, partitions, session, full=True).begin(now)
            return
        continued = self.sessions.continued(request.session_id, request.session_epoch, by_id, now)
        if not isinstance(continued, Session):
            call.answer(wire.FetchResponse(error_code=continued, responses=[]))
            return
        _change(continued, request, by_id)
        if continued.partitions:
            Waiting(self, call, continued.partitions, continued, full=False).begin(now)
        else:
            self.sessions.close(continued.session_id)
            Waiting(self, call, {}, None, full=True).begin(now)

    # Waiting

    def wait(self, waiting: "Waiting", until: Instant) -> None:
        for partition in waiting.read_from:
            self._waiting.setdefault(partition, set()).add(waiting)
        self._broker.timers.set(("fetch", waiting), until, waiting.late)

    def stop_waiting(self, waiting: "Waiting") -> None:
        self._broker.timers.cancel(("fetch", waiting))
        for partition in waiting.read_from:
            others = self._waiting.get(partition)
            if others is not None:
                others.discard(waiting)
                if not others:
                    del self._waiting[partition]

    def arrived(self, partition: TopicPartition, now: Instant) -> None:
        """The high watermark, or the last stable offset, of a partition moved."""
        for waiting in list(self._waiting.get(partition, ())):
            waiting.try_again(now)

    def follow_image(self, now: Instant) -> None:
        """Leaders may have changed: fetches that wait for a former leader are answered."""
        for waiting in dict.fromkeys(one for some in self._waiting.values() for one in some):
            waiting.try_again(now)

    # Reading

    def partition_of(self, asked: Asked, version: int) -> TopicPartition | None:
        """None: the id is of no topic that this broker knows."""
        name = self._broker.image.names.get(asked.topic_id) if version >= BY_ID else asked.topic
        return None if name is None else TopicPartition(name, asked.request.partition)

    def read(self, asked: Asked, call: Call, *, room: int, first: bool) -> wire.PartitionData:
        request, version = asked.request, call.version
        partition = self.partition_of(asked, version)
        if partition is None:
            return _failed(request.partition, ErrorCode.UNKNOWN_TOPIC_ID)
        replica = self._broker.led(partition)
        if not isinstance(replica, Replica):
            return self._not_led(partition, replica, version)
        fenced = check_epoch(replica, request.current_leader_epoch)
        if fenced is not None:
            return self._not_led(partition, fenced, version)
        data = wire.PartitionData(
            partition_index=partition.partition,
            error_code=ErrorCode.NONE,
            high_watermark=replica.high_watermark,
            last_stable_offset=replica.last_stable_offset(),
            log_start_offset=replica.log.start_offset,
            aborted_transactions=None,
            records=b"",
        )
        if request.last_fetched_epoch >= 0:
            diverged = replica.log.divergence(request.fetch_offset, request.last_fetched_epoch)
            if isinstance(diverged, AppendRefusal):
                return _failed(request.partition, diverged.error_code)
            if diverged is not None and request.fetch_offset >= replica.log.start_offset:
                data.diverging_epoch = wire.DivergingEpoch(
                    epoch=diverged.epoch, end_offset=diverged.end_offset
                )
                return data
        committed = call.message.isolation_level == READ_COMMITTED
        return self._filled(data, replica, request, version, room=room, first=first, committed=committed)

    def _filled(
        self,
        data: wire.PartitionData,
        replica: Replica,
        request: wire.FetchPartition,
        version: int,
        *,
        room: int,
        first: bool,
        committed: bool,
    ) -> wire.PartitionData:
        read = replica.log.read(
            request.fetch_offset,
            min(request.partition_max_bytes, room),
            upto=data.last_stable_offset if committed else data.high_watermark,
            at_least_one=first and version >= 3,
            cut=version < 3,
        )
        if isinstance(read, AppendRefusal):
            return _failed(request.partition, read.error_code)
        if committed:
            aborted = replica.log.aborted_between(request.fetch_offset, read.next_offset)
            data.aborted_transactions = [
                wire.AbortedTransaction(producer_id=producer, first_offset=offset)
                for producer, offset in aborted
            ]
        readable = self._readable(read, version)
        if isinstance(readable, AppendRefusal):
            return _failed(request.partition, readable.error_code)
        data.records = readable
        return data

    def _readable(self, read: ReadResult, version: int) -> bytes | AppendRefusal:
        """What this version of Fetch can read. zstd cannot be converted for clients before it."""
        if version >= SMALLEST_MAGIC_2 or self._broker.persona.magic == 0 or not read.batches:
            return read.data
        return down_convert(read.data, 0 if version < 2 else 1, read.offset)

    def _not_led(self, partition: TopicPartition, code: ErrorCode, version: int) -> wire.PartitionData:
        data = _failed(partition.partition, code)
        state = self._broker.image.partition(partition)
        if version >= NAMES_LEADER and state is not None and code in _LEADERSHIP:
            data.current_leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
        return data

    def count(
        self, call: Call, asked: dict[Place, Asked], answers: dict[Place, wire.PartitionData], now: Instant
    ) -> None:
        """Counts what is sent, if this broker counts at all."""
        traffic = self._broker.traffic
        if traffic is None:
            return
        for place, data in answers.items():
            partition = self.partition_of(asked[place], call.version) if data.records else None
            if partition is not None:
                traffic.fetched(call, partition, asked[place].request.fetch_offset, data.records or b"", now)

    def endpoints(self, parts: list[wire.PartitionData]) -> list[NodeEndpoint]:
        return self._broker.image.endpoints(
            part.current_leader.leader_id for part in parts if part.current_leader is not None
        )


_LEADERSHIP = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Waiting:
    """One fetch request that has not been answered."""

    def __init__(
        self,
        fetching: FetchService,
        call: Call,
        partitions: dict[Place, Asked],
        session: Session | None,
        *,
        full: bool,
    ) -> None:
        self._fetching = fetching
        self._call = call
        self._request: wire.FetchRequest = call.message
        self._session = session
        self._full = full
        self._partitions = dict(partitions)
        named = (fetching.partition_of(asked, call.version) for asked in partitions.values())
        self.read_from = [partition for partition in named if partition is not None]

    def begin(self, now: Instant) -> None:
        answers, ready = self._gather()
        if ready or self._request.max_wait_ms <= 0 or not self._partitions:
            self._answer(answers, now)
        else:
            self._fetching.wait(self, now + self._request.max_wait_ms)

    def try_again(self, now: Instant) -> None:
        answers, ready = self._gather()
        if ready:
            self._fetching.stop_waiting(self)
            self._answer(answers, now)

    def late(self, now: Instant) -> None:
        self._fetching.stop_waiting(self)
        self._answer(self._gather()[0], now)

    def _gather(self) -> tuple[dict[Place, wire.PartitionData], bool]:
        """What there is now, and whether that is enough to answer."""
        answers: dict[Place, wire.PartitionData] = {}
        room, size, urgent = self._request.max_bytes, 0, False
        for place, asked in self._partitions.items():
            data = self._fetching.read(asked, self._call, room=max(room - size, 0), first=size == 0)
            answers[place] = data
            size += len(data.records or b"")
            urgent = urgent or data.error_code != ErrorCode.NONE or data.diverging_epoch is not None
        # More than the answer can hold is never waited for.
        return answers, urgent or size >= min(self._request.min_bytes, room)

    def _answer(self, answers: dict[Place, wire.PartitionData], now: Instant) -> None:
        self._fetching.count(self._call, self._partitions, answers, now)
        topics: dict[tuple[str, bytes], list[wire.PartitionData]] = {}
        for place, data in answers.items():
            asked = self._partitions[place]
            if asked.news(data) or self._full:
                topics.setdefault((asked.topic, asked.topic_id), []).append(data)
        if self._session is not None and not self._full:
            self._rotate(answers)
        answered = [data for parts in topics.values() for data in parts]
        self._call.answer(
            wire.FetchResponse(
                session_id=self._session.session_id if self._session else 0,
                responses=[
                    wire.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=parts)
                    for (name, topic_id), parts in topics.items()
                ],
                node_endpoints=self._fetching.endpoints(answered),
            )
        )

    def _rotate(self, answers: dict[Place, wire.PartitionData]) -> None:
        """Partitions that got something go to the end, so that all of them get their turn."""
        assert self._session is not None
        held = self._session.partitions
        for place, data in answers.items():
            if data.records and place in held:
                held[place] = held.pop(place)


def _named(request: wire.FetchRequest, by_id: bool) -> dict[Place, Asked]:
    return {
        (topic.topic_id if by_id else topic.topic, part.partition): Asked(topic.topic, topic.topic_id, part)
        for topic in request.topics
        for part in topic.partitions
    }


def _change(session: Session, request: wire.FetchRequest, by_id: bool) -> None:
    """What is named is new, or fetched from elsewhere; what is forgotten goes, even if it was just named."""
    for place, asked in _named(request, by_id).items():
        held = session.partitions.get(place)
        if held is None:
            session.partitions[place] = asked
        else:
            held.request = asked.request
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            session.partitions.pop((forgotten.topic_id if by_id else forgotten.topic, index), None)


def _failed(index: int, code: ErrorCode) -> wire.PartitionData:
    return wire.PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
    )


def check_epoch(replica: Replica, epoch: int) -> ErrorCode | None:
    """A client names the epoch that it knows; an older one is fenced, a newer one is not known here yet."""
    if epoch < 0 or epoch == replica.leader_epoch:
        return None
    return ErrorCode.FENCED_LEADER_EPOCH if epoch < replica.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
