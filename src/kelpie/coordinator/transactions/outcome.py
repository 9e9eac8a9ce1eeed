"""What follows from one event in the transaction coordinator: an Outcome, and markers to be written."""

from dataclasses import dataclass

from kelpie.coordinator.outcome import Outcome
from kelpie.model.names import TopicPartition


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


@dataclass(frozen=True, slots=True)
class TransactionOutcome(Outcome):
    markers: tuple[MarkerRequest, ...] = ()
    """To be written to the partitions' leaders, like the replies only once the records are written."""


NOTHING = TransactionOutcome()
