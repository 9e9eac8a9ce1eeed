"""What a log knows of the producers that write to it: epochs, sequence numbers, and the last five batches.

Follows Kafka's ProducerStateManager, ProducerAppendInfo and VerificationStateEntry (KIP-98, KIP-360,
KIP-890). `examine` judges batches and says what the producers would be like after them; `accept` makes it so.
Entries never change, so that a segment can remember those of its beginning, and a truncated log can be
rebuilt from there.

As in Kafka 4, a producer of which nothing is known may begin with any sequence number: UNKNOWN_PRODUCER_ID is
not answered any more. Only a producer that bumps its epoch with every transaction must begin with 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kelpie.broker.log.batch import AppendRefusal, StoredBatch
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.records import BatchHeader, ControlType

Origin = Literal["client", "coordinator", "replication"]

REMEMBERED_BATCHES = 5
_NO_EPOCH = -1
_LARGEST_SEQUENCE = 2**31 - 1


class RememberedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: Instant


class ProducerEntry(NamedTuple):
    """One producer, as DescribeProducers shows it."""

    producer_id: int
    epoch: int = _NO_EPOCH
    coordinator_epoch: int = -1
    """Of the transaction coordinator that wrote the last marker."""
    last_timestamp: Instant = -1
    transaction_start: int | None = None
    """The first offset of its open transaction."""
    batches: tuple[RememberedBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_data_offset(self) -> int | None:
        return self.batches[-1].last_offset if self.batches else None


class VerificationGuard:
    """Proof that the coordinator was asked since the last transaction ended here. Identity counts."""

    __slots__ = ()


@dataclass(slots=True)
class _Verification:
    epoch: int
    lowest_sequence: int
    supports_epoch_bump: bool
    guard: VerificationGuard = field(default_factory=VerificationGuard)


class EndedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    aborted: bool


@dataclass(slots=True)
class ProducerChanges:
    """What examined batches will make of the producers, and of the transactions."""

    entries: dict[int, ProducerEntry] = field(default_factory=dict)
    begun: list[tuple[int, int]] = field(default_factory=list)
    """First offset and producer."""
    ended: list[EndedTransaction] = field(default_factory=list)
    verified: list[int] = field(default_factory=list)
    """Producers that have used their verification guard."""


class _Refused(Exception):
    def __init__(self, code: ErrorCode, reason: str) -> None:
        self.refusal = AppendRefusal(code, reason)


NO_CHANGES = ProducerChanges()


class Producers:
    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self._verifications: dict[int, _Verification] = {}

    def snapshot(self) -> Mapping[int, ProducerEntry]:
        return self.entries.copy()

    def examine(
        self,
        batches: Iterable[StoredBatch],
        origin: Origin,
        *,
        verify: bool = False,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> ProducerChanges | RememberedBatch | AppendRefusal:
        """Judge batches where they would be appended. A remembered batch: they are a duplicate of it."""
        changes = NO_CHANGES
        try:
            for batch in batches:
                header = batch.header
                if not isinstance(header, BatchHeader) or header.producer_id < 0:
                    continue
                if changes is NO_CHANGES:
                    changes = ProducerChanges()
                if origin == "client":
                    duplicate = self._duplicate_of(header)
                    if duplicate is not None:
                        return duplicate
                if origin != "replication" and header.is_transactional:
                    self._check_verified(header, verify, guard)
                entry = changes.entries.get(header.producer_id) or self.entries.get(header.producer_id)
                if header.is_control:
                    self._marker(
                        entry,
                        batch,
                        header,
                        changes,
                        origin=origin,
                        transaction_version=transaction_version,
                    )
                else:
                    self._data(entry, batch, header, changes, origin)
        except _Refused as refused:
            return refused.refusal
        return changes

    def accept(self, changes: ProducerChanges) -> None:
        self.entries.update(changes.entries)
        for producer_id in changes.verified:
            self._verifications.pop(producer_id, None)

    def rebuild(self, snapshot: Mapping[int, ProducerEntry], batches: Sequence[StoredBatch]) -> None:
        """Begin again with a snapshot and the batches that follow it. Guards given out are void."""
        self.entries = dict(snapshot)
        self._verifications.clear()
        for batch in batches:
            changes = self.examine((batch,), "replication")
            assert isinstance(changes, ProducerChanges)
            self.accept(changes)

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """None when the transaction is open here, so that there is nothing to ask the coordinator."""
        entry = self.entries.get(producer_id)
        if entry is not None and entry.transaction_start is not None and entry.epoch == epoch:
            return None
        state = self._verifications.get(producer_id)
        if state is None:
            state = _Verification(epoch, sequence, supports_epoch_bump)
            self._verifications[producer_id] = state
        elif epoch > state.epoch:
            state.epoch, state.lowest_sequence = epoch, sequence
        elif epoch == state.epoch:
            state.lowest_sequence = min(state.lowest_sequence, sequence)
        return state.guard

    def expire(self, now: Instant, expiration_ms: int) -> int:
        """Forget producers that are idle. One with an open transaction is kept."""
        expired = [
            entry.producer_id
            for entry in self.entries.values()
            if entry.transaction_start is None and now - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)

    # One batch

    def _duplicate_of(self, header: BatchHeader) -> RememberedBatch | None:
        entry = self.entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in entry.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def _check_verified(self, header: BatchHeader, verify: bool, guard: VerificationGuard | None) -> None:
        entry = self.entries.get(header.producer_id)
        if entry is not None and entry.epoch == header.producer_epoch and entry.transaction_start is not None:
            return
        if header.is_control:
            return
        if entry is not None and header.producer_epoch < entry.epoch:
            raise _stale(header, entry.epoch)
        if verify:
            state = self._verifications.get(header.producer_id)
            if guard is None or state is None or state.guard is not guard:
                raise _Refused(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def _data(
        self,
        entry: ProducerEntry | None,
        batch: StoredBatch,
        header: BatchHeader,
        changes: ProducerChanges,
        origin: Origin,
    ) -> None:
        known = entry or ProducerEntry(header.producer_id)
        if origin != "replication":
            if header.producer_epoch < known.epoch:
                raise _stale(header, known.epoch)
            if origin == "client":
                self._check_sequence(known, header)
        start = known.transaction_start
        if start is not None and not header.is_transactional and origin != "replication":
            raise _Refused(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} writes outside of its transaction at {batch.base_offset}",
            )
        if header.is_transactional:
            changes.verified.append(header.producer_id)
            if start is None:
                start = batch.base_offset
                changes.begun.append((start, header.producer_id))
        remembered = RememberedBatch(
            header.base_sequence,
            header.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
        )
        before = known.batches[1 - REMEMBERED_BATCHES :] if known.epoch == header.producer_epoch else ()
        changes.entries[header.producer_id] = ProducerEntry(
            header.producer_id,
            header.producer_epoch,
            known.coordinator_epoch,
            batch.max_timestamp,
            start,
            (*before, remembered),
        )

    def _check_sequence(self, known: ProducerEntry, header: BatchHeader) -> None:
        first = header.base_sequence
        state = self._verifications.get(header.producer_id)
        if state is not None:
            if state.supports_epoch_bump and first != 0 and not known.batches:
                raise _out_of_order(header, "0 is expected of a producer without state")
            if first > state.lowest_sequence:
                raise _out_of_order(header, f"the earliest seen is {state.lowest_sequence}")
        if known.epoch == _NO_EPOCH:
            return
        if header.producer_epoch != known.epoch:
            if first != 0:
                raise _out_of_order(header, f"0 is expected after epoch {known.epoch}")
        elif first != (0 if known.last_sequence == _LARGEST_SEQUENCE else known.last_sequence + 1):
            raise _out_of_order(header, f"the last one is {known.last_sequence}")

    def _marker(
        self,
        entry: ProducerEntry | None,
        batch: StoredBatch,
        header: BatchHeader,
        changes: ProducerChanges,
        *,
        origin: Origin,
        transaction_version: int,
    ) -> None:
        marker = next(batch.control_records(), None)
        if marker is None or marker.coordinator_epoch is None:
            return  # The cleaner has emptied it: nothing is left of the whole transaction.
        known = entry or ProducerEntry(header.producer_id)
        if origin != "replication":
            self._check_marker(known, header, marker.coordinator_epoch, transaction_version)
        if known.transaction_start is not None:
            aborted = marker.type is ControlType.ABORT
            changes.ended.append(
                EndedTransaction(header.producer_id, known.transaction_start, batch.last_offset, aborted)
            )
        state = self._verifications.get(header.producer_id)
        next_has_begun = (
            state is not None and state.supports_epoch_bump and state.epoch == header.producer_epoch
        )
        if not next_has_begun:
            changes.verified.append(header.producer_id)
        changes.entries[header.producer_id] = ProducerEntry(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            marker.timestamp,
            None,
            known.batches if known.epoch == header.producer_epoch else (),
        )

    def _check_marker(
        self, known: ProducerEntry, header: BatchHeader, coordinator_epoch: int, transaction_version: int
    ) -> None:
        epoch = header.producer_epoch
        if transaction_version >= 2:
            # The coordinator bumps the epoch before it ends a transaction. The same epoch again, with nothing
            # open, is the same marker again, and may be written once more (KAFKA-19999).
            repeated = epoch == known.epoch and known.transaction_start is None
            if epoch <= known.epoch and not repeated:
                raise _stale(header, known.epoch)
        elif epoch < known.epoch:
            raise _stale(header, known.epoch)
        if coordinator_epoch < known.coordinator_epoch:
            raise _Refused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Coordinator epoch {coordinator_epoch} for producer {header.producer_id};"
                f" {known.coordinator_epoch} has been seen",
            )


def _stale(header: BatchHeader, seen: int) -> _Refused:
    return _Refused(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch {header.producer_epoch} of producer {header.producer_id}; {seen} has been seen",
    )


def _out_of_order(header: BatchHeader, why: str) -> _Refused:
    return _Refused(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Sequence number {header.base_sequence} of producer {header.producer_id},"
        f" epoch {header.producer_epoch}: {why}",
    )
