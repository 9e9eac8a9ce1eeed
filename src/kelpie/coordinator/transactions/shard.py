"""The machine of one partition of `__transaction_state`. The package says how it is driven.

What changes the state: requests and timers only plan a step (`Transaction.prepare`) and ask for its record to
be written; `replay` takes it. One exception, as in Kafka before transaction version 2: an epoch raised to
fence a producer counts at once, even if its record fails to be written.

A client's end is answered as soon as it is prepared in the log. Then the markers are written by the driver,
and until their completion is in the log too, CONCURRENT_TRANSACTIONS answers all that would change the id.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any

from kelpie.coordinator.outcome import CallReply, Timer
from kelpie.coordinator.transactions import answers, fencing
from kelpie.coordinator.transactions.answers import Answer, Replies
from kelpie.coordinator.transactions.listing import described, not_described
from kelpie.coordinator.transactions.outcome import NOTHING, MarkerRequest, TransactionOutcome
from kelpie.coordinator.transactions.records import answer_to_failed_append, facts_of, record_of
from kelpie.coordinator.transactions.release_behaviour import TransactionBehaviour, TransactionConfig
from kelpie.coordinator.transactions.transaction import (
    IDLE,
    NO_EPOCH,
    NO_ID,
    PREPARED,
    Facts,
    Transaction,
    end_completed,
    end_prepared,
    epoch_fenced,
    forgotten,
    new_facts,
    partitions_joined,
)
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kelpie.wire.api.add_partitions_to_txn import AddPartitionsToTxnRequest
from kelpie.wire.api.describe_transactions import DescribedTransaction
from kelpie.wire.api.end_txn import EndTxnRequest
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.transaction_state import TransactionState, decode_key, decode_value

_TIMEOUT = "timeout"
_COMPLETION = "completion"


class TransactionShard:
    def __init__(
        self,
        config: TransactionConfig,
        behaviour: TransactionBehaviour,
        next_producer_id: Callable[[], int],
        coordinator_epoch: int,
    ) -> None:
        self._config = config
        self._behaviour = behaviour
        self._next_producer_id = next_producer_id
        self._coordinator_epoch = coordinator_epoch
        self.transactions: dict[str, Transaction] = {}
        self._loaded_at: Instant | None = None
        self._left = False

    # Loading and leaving

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """A record is in the log. Raises Malformed for what cannot be read."""
        transactional_id = decode_key(key).transactional_id
        written = decode_value(value)
        if written is None:
            self.transactions.pop(transactional_id, None)
            return
        transaction = self.transactions.get(transactional_id)
        if transaction is not None and transaction.pending is not None:
            record = record_of(transactional_id, transaction.pending, self._behaviour.value_version)
            if record.value == value:
                transaction.settle()  # More than the record says: the last epoch is kept.
                return
        self.transactions[transactional_id] = Transaction(transactional_id, facts_of(written))

    def loaded(self, now: Instant) -> TransactionOutcome:
        """Ends that were prepared are carried on, and open transactions are watched again."""
        assert self._loaded_at is None, "a shard is loaded once"
        self._loaded_at = now
        markers: list[MarkerRequest] = []
        timers: list[Timer] = []
        for transaction in self.transactions.values():
            timers += self._watch(transaction.transactional_id, transaction.facts, now)
            if transaction.facts.state in PREPARED:
                transaction.prepare(end_completed(transaction.facts, now))
                markers += self._markers(transaction.transactional_id, transaction.facts)
                if not transaction.facts.partitions:
                    timers.append(Timer((_COMPLETION, transaction.transactional_id), now))
        return TransactionOutcome(timers=tuple(timers), markers=tuple(markers))

    def unloaded(self) -> TransactionOutcome:
        """No longer the coordinator. Calls whose records are being written are answered when those fail."""
        self._left = True
        return TransactionOutcome(
            timers=tuple(
                Timer((kind, transactional_id), None)
                for transactional_id in self.transactions
                for kind in (_TIMEOUT, _COMPLETION)
            )
        )

    def timer(self, key: Hashable, now: Instant) -> TransactionOutcome:
        match key:
            case (kind, str(transactional_id)) if kind in (_TIMEOUT, _COMPLETION):
                transaction = self.transactions.get(transactional_id)
            case _:
                raise ValueError(f"{key!r} is no timer of this shard")
        if transaction is None:
            return NOTHING  # Expired meanwhile.
        if kind == _COMPLETION:
            return self._complete(transaction)
        return self._timeout_due(transaction, now)

    def expire(self, now: Instant) -> TransactionOutcome:
        """Forget ids without a transaction that were not used for transactional.id.expiration.ms."""
        dying = [
            (transaction, transaction.prepare(forgotten(transaction.facts)))
            for transaction in self.transactions.values()
            if transaction.pending is None
            and transaction.facts.state in IDLE
            and transaction.facts.updated_at <= now - self._config.expiration_ms
        ]
        if not dying:
            return NOTHING

        def failed(_error: ErrorCode, _now: Instant) -> TransactionOutcome:
            for transaction, facts in dying:
                transaction.abandon(facts)
            return NOTHING

        version = self._behaviour.value_version
        return TransactionOutcome(
            records=tuple(record_of(each.transactional_id, facts, version) for each, facts in dying),
            failed=failed,
        )

    # Requests

    def init_producer_id(
        self, to: Any, request: InitProducerIdRequest, version: int, now: Instant
    ) -> TransactionOutcome:
        """A producer begins, or goes on after an error by naming the id and epoch that it holds (KIP-360)."""
        transactional_id = request.transactional_id
        assert transactional_id is not None, "a producer id without transactional id is the broker's to give"
        answer = answers.init_producer_id(to, version)
        named = (request.producer_id != NO_ID, request.producer_epoch != NO_EPOCH)
        if named in ((True, False), (False, True)) or not transactional_id:
            return TransactionOutcome(replies=answer(ErrorCode.INVALID_REQUEST))
        if not 0 < request.transaction_timeout_ms <= self._config.max_timeout_ms:
            return TransactionOutcome(replies=answer(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
        expected = (request.producer_id, request.producer_epoch) if named == (True, True) else None
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            facts = new_facts(self._next_producer_id(), request.transaction_timeout_ms, now)
            transaction = self.transactions[transactional_id] = Transaction(transactional_id, facts)
        refusal = fencing.refuse_start(transaction, expected)
        if refusal is not None:
            return TransactionOutcome(replies=answer(refusal))
        if transaction.facts.state is TransactionState.ONGOING:
            # The client comes again, and gets an epoch beyond the one that this abort takes.
            return self._fence(transaction, answer, answer(ErrorCode.CONCURRENT_TRANSACTIONS), now)

        step = fencing.start(
            transaction.facts, expected, request.transaction_timeout_ms, self._next_producer_id, now
        )
        if isinstance(step, ErrorCode):
            return TransactionOutcome(replies=answer(step))
        replies = answer(ErrorCode.NONE, step.producer_id, step.producer_epoch)
        return self._write(transaction, step, replies, answer)

    def add_partitions(
        self, to: Any, request: AddPartitionsToTxnRequest, version: int, now: Instant
    ) -> TransactionOutcome:
        """The client names the partitions that join: v0-3. Later versions: `verify_or_add` for each."""
        assert version <= 3, "AddPartitionsToTxn v4+ asks for many transactions; each goes to its own shard"
        partitions = [
            TopicPartition(topic.name, partition)
            for topic in request.v3_and_below_topics
            for partition in topic.partitions
        ]
        answer = answers.add_partitions(to, version, partitions)
        producer = (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        return self._join(request.v3_and_below_transactional_id, producer, partitions, answer, now)

    def verify_or_add(
        self,
        to: Any,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        verify_only: bool,
        now: Instant,
    ) -> TransactionOutcome:
        """A partition's leader asks before it appends: are these in the transaction, or (KIP-890) add them.

        The response maps each partition to its error. Brokers always know PRODUCER_FENCED.
        """
        wanted = list(partitions)
        answer = answers.verify_or_add(to, wanted)
        producer = (producer_id, producer_epoch)
        if not verify_only:
            version = min(2, self._behaviour.transaction_version)
            return self._join(transactional_id, producer, wanted, answer, now, client_version=version)
        transaction = self._known(transactional_id)
        if isinstance(transaction, ErrorCode):
            return TransactionOutcome(replies=answer(transaction))
        refusal = fencing.refuse_verification(transaction.facts, producer)
        if refusal is not None:
            return TransactionOutcome(replies=answer(refusal))
        joined = transaction.facts.partitions
        errors = {
            partition: ErrorCode.NONE if partition in joined else ErrorCode.TRANSACTION_ABORTABLE
            for partition in wanted
        }
        return TransactionOutcome(replies=(CallReply(to, errors),))

    def add_offsets(
        self,
        to: Any,
        request: AddOffsetsToTxnRequest,
        version: int,
        offsets_partition: TopicPartition,
        now: Instant,
    ) -> TransactionOutcome:
        """The partition of `__consumer_offsets` that holds the group joins."""
        answer = answers.add_offsets(to, version)
        producer = (request.producer_id, request.producer_epoch)
        return self._join(request.transactional_id, producer, [offsets_partition], answer, now)

    def end(self, to: Any, request: EndTxnRequest, version: int, now: Instant) -> TransactionOutcome:
        """Commit or abort. From v5 on the answer carries the id and epoch of the next transaction."""
        raises = version >= 5
        answer = answers.end(to, version)
        transaction = self._known(request.transactional_id)
        if isinstance(transaction, ErrorCode):
            return TransactionOutcome(replies=answer(transaction))
        facts = transaction.facts
        judge = fencing.judge_raising_end if raises else fencing.judge_end
        verdict = judge(transaction, (request.producer_id, request.producer_epoch), request.committed)
        if verdict is ErrorCode.NONE:
            return TransactionOutcome(replies=answer(verdict, facts.producer_id, facts.producer_epoch))
        if verdict is not None:
            return TransactionOutcome(replies=answer(verdict))
        state = TransactionState.PREPARE_COMMIT if request.committed else TransactionState.PREPARE_ABORT
        prepared = self._prepared(facts, state, 2 if raises else 0, now)
        next_facts = end_completed(prepared, now)
        replies = answer(ErrorCode.NONE, next_facts.producer_id, next_facts.producer_epoch)
        return self._write_end(transaction, prepared, replies, answer)

    def markers_written(self, transactional_id: str, _now: Instant) -> TransactionOutcome:
        """Every partition of the last MarkerRequest of this id has its marker."""
        transaction = self.transactions.get(transactional_id)
        return NOTHING if transaction is None else self._complete(transaction)

    def describe(self, transactional_id: str) -> DescribedTransaction:
        if not transactional_id:
            return not_described(transactional_id, ErrorCode.INVALID_REQUEST)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return not_described(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return described(transactional_id, transaction.facts)

    # Steps

    def _known(self, transactional_id: str) -> Transaction | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return self.transactions.get(transactional_id) or ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def _join(
        self,
        transactional_id: str,
        producer: fencing.Producer,
        partitions: Iterable[TopicPartition],
        answer: Answer,
        now: Instant,
        *,
        client_version: int = 0,
    ) -> TransactionOutcome:
        transaction = self._known(transactional_id)
        if isinstance(transaction, ErrorCode):
            return TransactionOutcome(replies=answer(transaction))
        pending_first = self._behaviour.pending_answers_first
        refusal = fencing.refuse_join(transaction, producer, pending_first=pending_first)
        if refusal is not None:
            return TransactionOutcome(replies=answer(refusal))
        joining = frozenset(partitions)
        if transaction.facts.state is TransactionState.ONGOING and joining <= transaction.facts.partitions:
            return TransactionOutcome(replies=answer(ErrorCode.NONE))
        joined = partitions_joined(transaction.facts, joining, client_version, now)
        outcome = self._write(transaction, joined, answer(ErrorCode.NONE), answer)
        return replace(outcome, timers=self._watch(transactional_id, joined, now))

    def _fence(
        self, transaction: Transaction, answer: Answer, replies: Replies, now: Instant
    ) -> TransactionOutcome:
        """Abort what a producer has left open, with a higher epoch that shuts this producer out."""
        facts = transaction.facts
        if self._behaviour.raises_epoch:
            prepared = self._prepared(
                facts, TransactionState.PREPARE_ABORT, self._behaviour.transaction_version, now
            )
            return self._write_end(transaction, prepared, replies, answer)
        transaction.facts = epoch_fenced(facts, again=transaction.fence_failed)
        prepared = self._prepared(transaction.facts, TransactionState.PREPARE_ABORT, 0, now)

        def failed(error: ErrorCode) -> Replies:
            transaction.fence_failed = True
            return answer(error)

        return self._write_end(transaction, prepared, replies, failed)

    def _prepared(self, facts: Facts, state: TransactionState, client_version: int, now: Instant) -> Facts:
        moves = client_version >= 2 and facts.exhausted
        return end_prepared(facts, state, client_version, self._next_producer_id() if moves else NO_ID, now)

    def _write_end(
        self, transaction: Transaction, prepared: Facts, replies: Replies, answer: Answer
    ) -> TransactionOutcome:
        def written(now: Instant) -> TransactionOutcome:
            assert transaction.facts.state in PREPARED, "records are replayed before `written` runs"
            transaction.fence_failed = False
            transaction.prepare(end_completed(transaction.facts, now))
            completion = NOTHING if transaction.facts.partitions else self._complete(transaction)
            return replace(completion, timers=(Timer((_TIMEOUT, transaction.transactional_id), None),))

        outcome = self._write(transaction, prepared, replies, answer)
        markers = self._markers(transaction.transactional_id, prepared)
        return replace(outcome, written=written, markers=markers)

    def _markers(self, transactional_id: str, prepared: Facts) -> tuple[MarkerRequest, ...]:
        if not prepared.partitions:
            return ()
        marker = MarkerRequest(
            transactional_id=transactional_id,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            coordinator_epoch=self._coordinator_epoch,
            committed=prepared.state is TransactionState.PREPARE_COMMIT,
            partitions=tuple(sorted(prepared.partitions)),
            transaction_version=prepared.client_version,
        )
        return (marker,)

    def _write(
        self, transaction: Transaction, step: Facts, replies: Replies, answer: Answer
    ) -> TransactionOutcome:
        pending = transaction.prepare(step)

        def failed(error: ErrorCode, now: Instant) -> TransactionOutcome:
            transaction.abandon(pending)
            watch = self._watch(transaction.transactional_id, transaction.facts, now)
            return TransactionOutcome(replies=answer(answer_to_failed_append(error)), timers=watch)

        record = record_of(transaction.transactional_id, pending, self._behaviour.value_version)
        return TransactionOutcome(records=(record,), replies=replies, failed=failed)

    def _complete(self, transaction: Transaction) -> TransactionOutcome:
        completed = transaction.pending
        if transaction.facts.state not in PREPARED or completed is None or transaction.completing:
            return NOTHING  # It is complete already, or being completed.
        transaction.completing = True

        def failed(error: ErrorCode, now: Instant) -> TransactionOutcome:
            transaction.completing = False
            if self._left or answer_to_failed_append(error) is ErrorCode.NOT_COORDINATOR:
                return NOTHING  # The broker that loads this partition next completes it.
            retry_at = now + self._config.completion_retry_ms
            return TransactionOutcome(timers=(Timer((_COMPLETION, transaction.transactional_id), retry_at),))

        record = record_of(transaction.transactional_id, completed, self._behaviour.value_version)
        return TransactionOutcome(records=(record,), failed=failed)

    # Timeouts

    def _timeout_due(self, transaction: Transaction, now: Instant) -> TransactionOutcome:
        facts = transaction.facts
        if facts.state is not TransactionState.ONGOING:
            return NOTHING  # It has ended.
        if transaction.pending is not None or not facts.is_late(now):
            return TransactionOutcome(timers=self._watch(transaction.transactional_id, facts, now))
        return self._fence(transaction, answers.no_call, (), now)

    def _watch(self, transactional_id: str, facts: Facts, now: Instant) -> tuple[Timer, ...]:
        if self._left:
            return ()
        assert self._loaded_at is not None, "a shard answers once it is loaded"
        at = facts.first_late_check(self._loaded_at, self._config.abort_interval_ms, now)
        return () if at is None else (Timer((_TIMEOUT, transactional_id), at),)
