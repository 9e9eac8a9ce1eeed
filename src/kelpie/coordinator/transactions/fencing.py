"""Every refusal of a request, in the order in which Kafka checks.

The order matters to clients: INVALID_PRODUCER_ID_MAPPING and PRODUCER_FENCED end a producer,
CONCURRENT_TRANSACTIONS makes it wait and ask again.

Ends with transaction version 2 (EndTxn v5), where no transaction is ongoing. "Retry" carries the epoch before
the current one (or the exhausted epoch of the previous producer id), "current" the current one:

                     abort                       commit
                     retry     current           retry     current
    Empty            fenced    ends, new epoch   fenced    invalid state
    CompleteAbort    done      ends, new epoch   invalid   invalid state
    CompleteCommit   invalid   ends, new epoch   done      invalid state

"Done" is answered without another step. With version 0 and 1 (EndTxn v0-4) the epoch does not change: the
same end again is done, the other one is invalid, and Empty has nothing to end.
"""

from collections.abc import Callable

from kelpie.coordinator.transactions.transaction import (
    HIGHEST_EPOCH,
    NO_EPOCH,
    PREPARED,
    Facts,
    Transaction,
    epoch_raised,
    exhausted,
    producer_id_rotated,
)
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.transaction_state import TransactionState

Producer = tuple[int, int]
"""Producer id and epoch."""


def refuse_start(transaction: Transaction, expected: Producer | None) -> ErrorCode | None:
    """InitProducerId, up to the epoch, which is checked when it is raised."""
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is not None and not _may_go_on(transaction.facts, expected):
        return ErrorCode.PRODUCER_FENCED
    if transaction.facts.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return None


def start(
    facts: Facts,
    expected: Producer | None,
    timeout_ms: int,
    next_producer_id: Callable[[], int],
    now: Instant,
) -> Facts | ErrorCode:
    """InitProducerId that was not refused: the next epoch, or a new id, unless the epoch is a wrong one."""
    epoch = None if expected is None else expected[1]
    if not facts.exhausted:
        return epoch_raised(facts, timeout_ms, epoch, now) or ErrorCode.PRODUCER_FENCED
    if epoch not in (None, facts.producer_epoch):
        return ErrorCode.UNKNOWN_SERVER_ERROR  # An assertion of Kafka fails here.
    return producer_id_rotated(facts, next_producer_id(), timeout_ms, now, by_producer=expected is not None)


def _may_go_on(facts: Facts, expected: Producer) -> bool:
    producer_id, epoch = expected
    return (
        facts.producer_epoch == NO_EPOCH  # Just created: the coordinator had forgotten this producer.
        or producer_id == facts.producer_id
        or (producer_id == facts.previous_producer_id and exhausted(epoch))  # A retry; the answer was lost.
    )


def refuse_join(transaction: Transaction, producer: Producer, *, pending_first: bool) -> ErrorCode | None:
    """AddPartitionsToTxn and AddOffsetsToTxn."""
    pending = transaction.pending is not None
    if pending and pending_first:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    refusal = refuse_producer(transaction.facts, producer)
    if refusal is not None:
        return refusal
    if pending or transaction.facts.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return None


def refuse_verification(facts: Facts, producer: Producer) -> ErrorCode | None:
    """Pending joins do not matter: what is pending has not joined."""
    refusal = refuse_producer(facts, producer)
    if refusal is not None:
        return refusal
    return ErrorCode.CONCURRENT_TRANSACTIONS if facts.state in PREPARED else None


def refuse_producer(facts: Facts, producer: Producer) -> ErrorCode | None:
    producer_id, epoch = producer
    if producer_id != facts.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.PRODUCER_FENCED if epoch != facts.producer_epoch else None


def judge_end(transaction: Transaction, producer: Producer, committed: bool) -> ErrorCode | None:
    """EndTxn v0-4. NONE: it is done already. None: it may be done."""
    facts = transaction.facts
    refusal = refuse_producer(facts, producer)
    if refusal is not None:
        return refusal
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if facts.state is TransactionState.ONGOING:
        return None
    if facts.state is (TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT):
        return ErrorCode.NONE
    return _prepared_or_invalid(facts.state, committed)


def judge_raising_end(transaction: Transaction, producer: Producer, committed: bool) -> ErrorCode | None:
    """EndTxn v5. NONE: it is done already. None: it may be done."""
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    facts = transaction.facts
    producer_id, epoch = producer
    moved_on = (
        producer_id == facts.previous_producer_id and epoch == HIGHEST_EPOCH - 1 and facts.producer_epoch == 0
    )
    retry = moved_on or facts.producer_epoch == epoch + 1
    if producer_id != facts.producer_id and not moved_on:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING

    match facts.state:
        case TransactionState.ONGOING | TransactionState.EMPTY:
            valid = epoch == facts.producer_epoch
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            valid = facts.producer_epoch == epoch + 1
        case _:
            valid = retry or epoch == facts.producer_epoch
    if not valid:
        return ErrorCode.PRODUCER_FENCED

    match facts.state:
        case TransactionState.ONGOING:
            return None
        case TransactionState.EMPTY:
            return ErrorCode.INVALID_TXN_STATE if committed else None
        case TransactionState.COMPLETE_COMMIT if retry:
            return ErrorCode.NONE if committed else ErrorCode.INVALID_TXN_STATE
        case TransactionState.COMPLETE_ABORT if retry:
            return ErrorCode.INVALID_TXN_STATE if committed else ErrorCode.NONE
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
            return ErrorCode.INVALID_TXN_STATE if committed else None
    return _prepared_or_invalid(facts.state, committed)


def _prepared_or_invalid(state: TransactionState, committed: bool) -> ErrorCode:
    same = state is (TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT)
    return ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
