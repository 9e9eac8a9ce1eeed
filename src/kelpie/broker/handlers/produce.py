"""Produce: append to the leader's log, and answer when as many replicas have it as the client asked for.

acks=0 has no answer, except that a failure closes the connection. acks=1 is answered after the append,
acks=−1 when the high watermark has passed it, or with REQUEST_TIMED_OUT when it does not in time.
Transactional records are verified first (verification.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.image import INTERNAL_TOPICS
from kelpie.broker.log import AppendRefusal
from kelpie.broker.replica import Replica
from kelpie.broker.verification import Proof, verify_records
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import produce as wire
from kelpie.wire.structs import LeaderIdAndEpoch

NO_ACKS, ALL_ACKS = 0, -1
NAMES_LEADER = 10
BY_ID = 13
ADMIN_CLIENT = "__admin_client"
"""The client id that may write to internal topics."""


Waiting = tuple[Replica, int, wire.PartitionProduceResponse]
"""A replica, the end of what was appended to it, and its part of the response."""


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.ProduceRequest = call.message
    if request.transactional_id is None or not broker.transactions.verifies:
        _append(broker, call, {}, now)
        return
    data = {
        TopicPartition(_name(broker, call, topic), part.index): bytes(part.records or b"")
        for topic in request.topic_data
        for part in topic.partition_data
    }
    verify_records(
        broker,
        request.transactional_id,
        data,
        version=call.version,
        now=now,
        then=lambda proofs: _append(broker, call, proofs, now),
    )


def _name(broker: Broker, call: Call, topic: wire.TopicProduceData) -> str:
    """Empty for an unknown id."""
    return broker.image.names.get(topic.topic_id, "") if call.version >= BY_ID else topic.name


def _append(broker: Broker, call: Call, proofs: Mapping[TopicPartition, Proof], now: Instant) -> None:
    request: wire.ProduceRequest = call.message
    produce = _Produce(broker, call, proofs)
    response = wire.ProduceResponse(responses=[produce.topic(topic, now) for topic in request.topic_data])
    response.node_endpoints = broker.image.endpoints(produce.leaders)
    if request.acks == NO_ACKS:
        failed = any(part.error_code for topic in response.responses for part in topic.partition_responses)
        call.refuse() if failed else call.answer(None)
    elif produce.waiting:
        _Parked(broker, call, response, produce.waiting).start(now, request.timeout_ms)
    else:
        call.answer(response)


@dataclass
class _Produce:
    _broker: Broker
    _call: Call
    _proofs: Mapping[TopicPartition, Proof]
    leaders: set[int] = field(default_factory=set)
    """Leaders that the answer names."""
    waiting: list[Waiting] = field(default_factory=list)

    def topic(self, data: wire.TopicProduceData, now: Instant) -> wire.TopicProduceResponse:
        name = _name(self._broker, self._call, data)
        responses = [
            self._partition(TopicPartition(name, part.index), part, now) for part in data.partition_data
        ]
        return wire.TopicProduceResponse(
            name=data.name, topic_id=data.topic_id, partition_responses=responses
        )

    def _partition(
        self, partition: TopicPartition, data: wire.PartitionProduceData, now: Instant
    ) -> wire.PartitionProduceResponse:
        acks = self._call.message.acks
        if not partition.topic and self._call.version >= BY_ID:
            return self._refused(partition, ErrorCode.UNKNOWN_TOPIC_ID)
        if acks not in (NO_ACKS, 1, ALL_ACKS):
            return self._refused(partition, ErrorCode.INVALID_REQUIRED_ACKS)
        replica = self._broker.led(partition)
        if replica == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return self._refused(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.topic in INTERNAL_TOPICS and self._call.client_id != ADMIN_CLIENT:
            return self._refused(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
        if not isinstance(replica, Replica):
            return self._refused(partition, replica)
        refused = self._broker.refuses_write(replica, all_acks=acks == ALL_ACKS)
        if refused is not None:
            return self._refused(partition, refused)
        proof = self._proofs.get(partition)
        if isinstance(proof, ErrorCode):
            return self._refused(partition, proof)
        appended = replica.log.append_as_leader(
            data.records or b"",
            leader_epoch=replica.leader_epoch,
            now=now,
            config=self._broker.log_config(partition),
            produce_version=self._call.version,
            verify=self._broker.transactions.verifies,
            guard=proof,
        )
        if isinstance(appended, AppendRefusal):
            return self._refused(partition, appended.error_code, appended)
        response = wire.PartitionProduceResponse(
            index=partition.partition,
            error_code=ErrorCode.NONE,
            base_offset=appended.first_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start_offset,
        )
        if self._broker.traffic is not None and not appended.duplicate:
            self._broker.traffic.produced(partition, data.records or b"")
        self._broker.appended(replica, now)
        if acks == ALL_ACKS:
            self.waiting.append((replica, appended.last_offset + 1, response))
        return response

    def _refused(
        self, partition: TopicPartition, code: ErrorCode, refusal: AppendRefusal | None = None
    ) -> wire.PartitionProduceResponse:
        response = wire.PartitionProduceResponse(
            index=partition.partition,
            error_code=code,
            base_offset=-1,
            error_message=None if refusal is None else refusal.reason,
        )
        if refusal is not None:
            response.record_errors = [
                wire.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in refusal.record_errors
            ]
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._call.version >= NAMES_LEADER:
            state = self._broker.image.partition(partition)
            if state is not None:
                response.current_leader = LeaderIdAndEpoch(
                    leader_id=state.leader, leader_epoch=state.leader_epoch
                )
                self.leaders.add(state.leader)
        return response


class _Parked:
    """A produce request with acks=all: waits until each partition is committed or lost, or time is over."""

    def __init__(
        self, broker: Broker, call: Call, response: wire.ProduceResponse, waiting: list[Waiting]
    ) -> None:
        self._broker = broker
        self._call = call
        self._response = response
        self._waiting = waiting
        self._open = {id(part): part for _, _, part in waiting}

    def start(self, now: Instant, limit_ms: int) -> None:
        self._broker.timers.set(("produce", id(self)), now + limit_ms, self._late)
        for replica, end, part in self._waiting:
            replica.when_committed(
                end,
                lambda at, replica=replica, part=part: self._settle(part, self._outcome(replica)),  # type: ignore[misc]
                lambda code, at, part=part: self._settle(part, code),  # type: ignore[misc]
                now,
            )

    def _outcome(self, replica: Replica) -> ErrorCode:
        """All in sync have it; but there may be fewer of them by now than min.insync.replicas wants."""
        enough = self._broker.enough_in_sync(replica)
        return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def _settle(self, part: wire.PartitionProduceResponse, code: ErrorCode) -> None:
        if self._open.pop(id(part), None) is None:
            return
        self._mark(part, code)
        if not self._open:
            self._broker.timers.cancel(("produce", id(self)))
            self._call.answer(self._response)

    def _late(self, now: Instant) -> None:
        for part in self._open.values():
            self._mark(part, ErrorCode.REQUEST_TIMED_OUT)
        self._open.clear()
        self._call.answer(self._response)

    def _mark(self, part: wire.PartitionProduceResponse, code: ErrorCode) -> None:
        if code != ErrorCode.NONE:
            part.error_code, part.base_offset = code, -1
