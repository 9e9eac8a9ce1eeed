"""Before a leader writes records or offsets into a transaction, it asks the coordinator of that transaction
whether the partition is part of it (KIP-890; Kafka 3.6 and later for records, 3.8 for offsets). Produce v12
and TxnOffsetCommit v5 add the partition instead.

Follows ReplicaManager.handleProduceAppend, CoordinatorPartitionWriter.maybeStartTransactionVerification and
AddPartitionsToTxnManager of Kafka 4. A log in which the transaction is open already has its proof.
"""

from collections.abc import Callable, Mapping, Sequence

from kelpie.broker.broker import Broker
from kelpie.broker.call import Relay
from kelpie.broker.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kelpie.broker.log import VerificationGuard
from kelpie.broker.shard_host import ShardHost
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.wire.api.txn_offset_commit import TxnOffsetCommitRequest
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import BatchHeader, read_batches

ADDS_GROUP, ADDS_PARTITIONS = 5, 12
OFFSETS_KNOW_ABORTABLE, PRODUCE_KNOWS_ABORTABLE = 4, 11
_TRY_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
    }
)

Producer = tuple[int, int, int]
"""Id, epoch and first sequence of what is to be written."""
Proof = VerificationGuard | ErrorCode | None
"""What to append with, or why not to. None: the transaction is open in this log."""
_NO_SEQUENCE = -1


def verify_records(
    broker: Broker,
    transactional_id: str,
    data: Mapping[TopicPartition, bytes],
    *,
    version: int,
    now: Instant,
    then: Callable[[Mapping[TopicPartition, Proof]], None],
) -> None:
    """Calls `then` with a proof for each partition that is led here and gets transactional records."""
    adds = version >= ADDS_PARTITIONS
    guards: dict[TopicPartition, VerificationGuard] = {}
    proofs: dict[TopicPartition, Proof] = {}
    producers = set()
    for partition, records in data.items():
        replica, producer = broker.replicas.get(partition), _producer(records)
        if replica is None or not replica.leads or producer is None:
            continue
        guard = replica.log.begin_verification(*producer, supports_epoch_bump=adds)
        proofs[partition] = guard
        if guard is not None:
            guards[partition] = guard
            producers.add(producer[:2])
    if not guards:
        then(proofs)
        return

    def verified(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        for partition, error in errors.items():
            answered = _for_client(error, knows_abortable=version >= PRODUCE_KNOWS_ABORTABLE)
            if answered in _TRY_AGAIN:
                answered = ErrorCode.NOT_ENOUGH_REPLICAS  # What producers of every age try again after.
            proofs[partition] = guards[partition] if answered is ErrorCode.NONE else answered
        then(proofs)

    if len(producers) > 1:
        verified(dict.fromkeys(guards, ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    else:
        _ask(broker, transactional_id, producers.pop(), list(guards), adds=adds, now=now, then=verified)


def verify_offsets(
    broker: Broker,
    request: TxnOffsetCommitRequest,
    version: int,
    now: Instant,
    then: Callable[[ErrorCode], None],
) -> None:
    """Calls `then` with NONE, or with the error for the client."""
    group = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
    adds = version >= ADDS_GROUP
    replica = broker.replicas[group]
    producer = request.producer_id, request.producer_epoch
    guard = replica.log.begin_verification(*producer, _NO_SEQUENCE, supports_epoch_bump=adds)
    if guard is None or not broker.transactions.verifies:
        then(ErrorCode.NONE)
        return

    def verified(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        then(_for_client(errors[group], knows_abortable=version >= OFFSETS_KNOW_ABORTABLE))

    _ask(broker, request.transactional_id, producer, [group], adds=adds, now=now, then=verified)


def _producer(records: bytes) -> Producer | None:
    """Of transactional records. What cannot be read is for the log to refuse."""
    try:
        for batch in read_batches(records, crc=False):
            header = batch.header
            if isinstance(header, BatchHeader) and header.is_transactional and header.producer_id >= 0:
                return header.producer_id, header.producer_epoch, header.base_sequence
    except Malformed:
        pass
    return None


def _ask(
    broker: Broker,
    transactional_id: str,
    producer: tuple[int, int],
    partitions: Sequence[TopicPartition],
    *,
    adds: bool,
    now: Instant,
    then: Callable[[Mapping[TopicPartition, ErrorCode]], None],
) -> None:
    """Asks the coordinator of the transaction, wherever it is."""
    host = _shard_host(broker, transactional_id)
    if not isinstance(host, ShardHost):
        then(dict.fromkeys(partitions, host))
        return
    outcome = host.shard.verify_or_add(
        Relay(then),
        transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        partitions=partitions,
        verify_only=not adds,
        now=now,
    )
    host.carry_out(outcome, now)


def _shard_host(broker: Broker, transactional_id: str) -> ShardHost | ErrorCode:
    topic = broker.image.topic(TRANSACTIONS_TOPIC)
    leader = None
    if topic is not None:
        place = TopicPartition(TRANSACTIONS_TOPIC, partition_for(transactional_id, len(topic.partitions)))
        leader = broker.image.leader_of(place)
    if leader is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    peer = broker if leader.node_id == broker.node_id else broker.links.peer(leader.node_id)
    return ErrorCode.NETWORK_EXCEPTION if peer is None else peer.transactions.host_for(transactional_id)


def _for_client(error: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    """Producers expect INVALID_PRODUCER_EPOCH here, and old ones do not know TRANSACTION_ABORTABLE."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
