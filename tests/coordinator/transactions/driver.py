"""A driver that carries outcomes out, with the clock, the log and its failures in the test's hand."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from itertools import count
from typing import Any

from kelpie.coordinator.outcome import CoordinatorRecord, Outcome
from kelpie.coordinator.transactions import (
    BEHAVIOUR_4_3,
    MarkerRequest,
    TransactionBehaviour,
    TransactionConfig,
    TransactionOutcome,
    TransactionShard,
)
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kelpie.wire.api.add_partitions_to_txn import AddPartitionsToTxnRequest
from kelpie.wire.api.end_txn import EndTxnRequest, EndTxnResponse
from kelpie.wire.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kelpie.wire.structs import NamedTopicPartitions

START = 1_000_000
OFFSETS = TopicPartition("__consumer_offsets", 7)
Producer = tuple[int, int]


def partitions(*names: str) -> list[TopicPartition]:
    """Reads "a-0"."""
    return [TopicPartition(name[:-2], int(name[-1])) for name in names]


class Driver:
    def __init__(
        self,
        behaviour: TransactionBehaviour = BEHAVIOUR_4_3,
        config: TransactionConfig | None = None,
        log: list[CoordinatorRecord] | None = None,
    ) -> None:
        self.behaviour = behaviour
        self.config = config or TransactionConfig(abort_interval_ms=1000)
        self.now = START
        self.log: list[CoordinatorRecord] = list(log or ())
        self.writing: deque[Outcome] = deque()
        self.timers: dict[Hashable, int] = {}
        self.markers: list[MarkerRequest] = []
        self.answers: dict[int, Any] = {}
        self.on_answer: Callable[[int, Any], None] = lambda to, response: None
        self.on_record: Callable[[CoordinatorRecord], None] = lambda record: None
        self.tokens: Iterator[int] = count()
        self.epoch = 0
        self.producer_ids = count(1000)
        self.shard = self._load()

    def _load(self) -> TransactionShard:
        shard = TransactionShard(self.config, self.behaviour, lambda: next(self.producer_ids), self.epoch)
        for record in self.log:
            shard.replay(record.key, record.value)
        self.carry_out(shard.loaded(self.now))
        return shard

    # Carrying out

    def carry_out(self, outcome: Outcome) -> None:
        for timer in outcome.timers:
            self.timers.pop(timer.key, None)
            if timer.at is not None:
                self.timers[timer.key] = timer.at
        if outcome.records:
            self.writing.append(outcome)
        else:
            assert outcome.written is None
            self._conclude(outcome)

    def _conclude(self, outcome: Outcome) -> None:
        for reply in outcome.replies:
            assert reply.to not in self.answers, f"call {reply.to} is answered twice"
            self.answers[reply.to] = reply.response
            self.on_answer(reply.to, reply.response)
        if isinstance(outcome, TransactionOutcome):
            self.markers += outcome.markers

    def write(self) -> None:
        """The oldest batch is in the log, and the high watermark has passed it."""
        outcome = self.writing.popleft()
        for record in outcome.records:
            self.log.append(record)
            self.on_record(record)
            self.shard.replay(record.key, record.value)
        if outcome.written is not None:
            self.carry_out(outcome.written(self.now))
        self._conclude(outcome)

    def write_all(self) -> None:
        while self.writing:
            self.write()

    def fail(self, error: ErrorCode = ErrorCode.NOT_ENOUGH_REPLICAS) -> None:
        outcome = self.writing.popleft()
        assert outcome.failed is not None
        self.carry_out(outcome.failed(error, self.now))

    def mark(self) -> MarkerRequest:
        """All markers of the oldest request are on their leaders."""
        request = self.markers.pop(0)
        self.carry_out(self.shard.markers_written(request.transactional_id, self.now))
        return request

    def settle(self) -> None:
        """Everything under way gets done."""
        while self.writing or self.markers:
            self.write_all()
            while self.markers:
                self.mark()

    def advance(self, ms: int) -> None:
        self.now += ms
        due = sorted((at, str(key), key) for key, at in self.timers.items() if at <= self.now)
        for _, _, key in due:
            del self.timers[key]
            self.carry_out(self.shard.timer(key, self.now))

    def reload(self) -> None:
        """Leadership is lost, and comes back here."""
        self.carry_out(self.shard.unloaded())
        while self.writing:
            self.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert not self.timers, "a shard that left wants no timer"
        self.markers.clear()
        self.epoch += 1
        self.shard = self._load()

    # Calls, each with the token that its answer will bear

    def call(self, outcome: Callable[[int], Outcome]) -> int:
        to = next(self.tokens)
        self.carry_out(outcome(to))
        return to

    def init_producer_id(
        self,
        transactional_id: str,
        *,
        producer: Producer = (-1, -1),
        timeout_ms: int = 60_000,
        version: int = 5,
    ) -> int:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        return self.call(lambda to: self.shard.init_producer_id(to, request, version, self.now))

    def add_partitions(self, transactional_id: str, producer: Producer, *names: str, version: int = 3) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                NamedTopicPartitions(name=topic, partitions=[partition])
                for topic, partition in partitions(*names)
            ],
        )
        return self.call(lambda to: self.shard.add_partitions(to, request, version, self.now))

    def verify_or_add(
        self, transactional_id: str, producer: Producer, *names: str, verify_only: bool = False
    ) -> int:
        return self.call(
            lambda to: self.shard.verify_or_add(
                to,
                transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                partitions=partitions(*names),
                verify_only=verify_only,
                now=self.now,
            )
        )

    def add_offsets(self, transactional_id: str, producer: Producer, *, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id="g",
        )
        return self.call(lambda to: self.shard.add_offsets(to, request, version, OFFSETS, self.now))

    def end(
        self, transactional_id: str, producer: Producer, *, committed: bool = True, version: int = 5
    ) -> int:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
        )
        return self.call(lambda to: self.shard.end(to, request, version, self.now))

    # Whole turns

    def begin(self, transactional_id: str = "t", *names: str, timeout_ms: int = 60_000) -> Producer:
        """A producer with an open transaction, as a client of the behaviour' own time makes it."""
        producer = self.producer(self.init_producer_id(transactional_id, timeout_ms=timeout_ms))
        join = self.verify_or_add if self.behaviour.raises_epoch else self.add_partitions
        join(transactional_id, producer, *(names or ("a-0",)))
        self.write_all()
        return producer

    def producer(self, to: int) -> Producer:
        """Id and epoch in the answer to a call, which must be a success."""
        self.write_all()
        response = self.answers[to]
        assert isinstance(response, InitProducerIdResponse | EndTxnResponse)
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code)
        return response.producer_id, response.producer_epoch

    def errors(self, to: int) -> set[ErrorCode]:
        """All error codes in an answer."""
        return set(_codes(self.answers[to]))

    def state(self, transactional_id: str = "t") -> str:
        return self.shard.describe(transactional_id).transaction_state


def _codes(response: Any) -> Iterator[ErrorCode]:
    if isinstance(response, dict):
        yield from response.values()
    elif hasattr(response, "results_by_topic_v3_and_below"):
        for topic in response.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                yield ErrorCode(result.partition_error_code)
    else:
        yield ErrorCode(response.error_code)
