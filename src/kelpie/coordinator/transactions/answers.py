"""The responses, per API and version. Each function takes the token of a call and makes its `answer`.

Before KIP-588 clients do not know PRODUCER_FENCED: they get INVALID_PRODUCER_EPOCH instead.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kelpie.coordinator.outcome import CallReply
from kelpie.coordinator.transactions.listing import topic_results
from kelpie.coordinator.transactions.transaction import NO_EPOCH, NO_ID
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnResponse
from kelpie.wire.api.add_partitions_to_txn import AddPartitionsToTxnResponse
from kelpie.wire.api.end_txn import EndTxnResponse
from kelpie.wire.api.init_producer_id import InitProducerIdResponse

Replies = tuple[CallReply, ...]
Answer = Callable[[ErrorCode], Replies]


class ProducerAnswer(Protocol):
    """An answer with the producer's id and epoch."""

    def __call__(
        self, error: ErrorCode, producer_id: int = NO_ID, producer_epoch: int = NO_EPOCH, /
    ) -> Replies: ...


def no_call(_error: ErrorCode) -> Replies:
    """The coordinator acts on its own; no call waits."""
    return ()


def init_producer_id(to: Any, version: int) -> ProducerAnswer:
    def answer(error: ErrorCode, producer_id: int = NO_ID, producer_epoch: int = NO_EPOCH) -> Replies:
        response = InitProducerIdResponse(
            error_code=_known(error, version, since=4),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        return (CallReply(to, response),)

    return answer


def add_partitions(to: Any, version: int, partitions: Sequence[TopicPartition]) -> Answer:
    def answer(error: ErrorCode) -> Replies:
        results = topic_results(dict.fromkeys(partitions, _known(error, version, since=2)))
        response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
        return (CallReply(to, response),)

    return answer


def verify_or_add(to: Any, partitions: Sequence[TopicPartition]) -> Answer:
    return lambda error: (CallReply(to, dict.fromkeys(partitions, error)),)


def add_offsets(to: Any, version: int) -> Answer:
    return lambda error: (CallReply(to, AddOffsetsToTxnResponse(error_code=_known(error, version, since=2))),)


def end(to: Any, version: int) -> ProducerAnswer:
    def answer(error: ErrorCode, producer_id: int = NO_ID, producer_epoch: int = NO_EPOCH) -> Replies:
        response = EndTxnResponse(error_code=_known(error, version, since=2))
        if version >= 5:
            response.producer_id, response.producer_epoch = producer_id, producer_epoch
        return (CallReply(to, response),)

    return answer


def _known(error: ErrorCode, version: int, *, since: int) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
