"""What follows from one event in the transaction coordinator: an Outcome, and markers to be written."""

from dataclasses import dataclass

from kelpie.coordinator.outcome import Outcome
from kelpie.coordinator.transactions.transaction import Facts
from kelpie.model.names import TopicPartition
from kelpie.wire.transaction_state import TransactionState


@dataclass(frozen=True, slots=True)
class MarkerRequest:
    """One end of one transaction, to be written as a control record to every partition that is in it.

    `producer_epoch` is the epoch of the prepared end: with transaction version 2 already the raised one.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int
    """As WriteTxnMarkers carries it since KIP-1228."""

    @classmethod
    def of(cls, transactional_id: str, prepared: Facts, coordinator_epoch: int) -> "MarkerRequest":
        return cls(
            transactional_id=transactional_id,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            coordinator_epoch=coordinator_epoch,
            committed=prepared.state is TransactionState.PREPARE_COMMIT,
            partitions=tuple(sorted(prepared.partitions)),
            transaction_version=prepared.client_version,
        )


@dataclass(frozen=True, slots=True)
class TransactionOutcome(Outcome):
    markers: tuple[MarkerRequest, ...] = ()
    """To be written to the partitions' leaders, like the replies only once the records are written."""


NOTHING = TransactionOutcome()
