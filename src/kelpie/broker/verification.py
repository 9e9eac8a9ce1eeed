"""Before a group's coordinator writes offsets into a transaction, it asks the coordinator of that transaction
whether the group is part of it (KIP-890; Kafka 3.8 and later). TxnOffsetCommit v5 adds the group instead.

Follows CoordinatorPartitionWriter.maybeStartTransactionVerification and AddPartitionsToTxnManager of Kafka
4. A log in which the transaction is open already has its proof.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kelpie.broker.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kelpie.broker.shard_host import ShardHost
from kelpie.broker.tokens import Relay
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.wire.api.txn_offset_commit import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from kelpie.broker.broker import Broker

ADDS_GROUP = 5
KNOWS_ABORTABLE = 4
_NO_SEQUENCE = -1


def verify_offsets(
    broker: "Broker",
    request: TxnOffsetCommitRequest,
    version: int,
    now: Instant,
    then: Callable[[ErrorCode], None],
) -> None:
    """Calls `then` with NONE, or with what the client is to be told."""
    group = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
    adds = version >= ADDS_GROUP
    replica = broker.replicas[group]
    guard = replica.log.begin_verification(
        request.producer_id, request.producer_epoch, _NO_SEQUENCE, supports_epoch_bump=adds
    )
    if guard is None or not broker.transactions.verifies:
        then(ErrorCode.NONE)
        return
    coordinator = _coordinator(broker, request.transactional_id)
    if isinstance(coordinator, ErrorCode):
        then(coordinator)
        return
    host = coordinator.transactions.host_for(request.transactional_id)
    if not isinstance(host, ShardHost):
        then(host)
        return

    def verified(errors: dict[TopicPartition, ErrorCode]) -> None:
        then(_told(errors[group], version))

    outcome = host.shard.verify_or_add(
        Relay(verified),
        request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        partitions=[group],
        verify_only=not adds,
        now=now,
    )
    host.carry_out(outcome, now)


def _coordinator(broker: "Broker", transactional_id: str) -> "Broker | ErrorCode":
    topic = broker.image.topic(TRANSACTIONS_TOPIC)
    leader = None
    if topic is not None:
        place = TopicPartition(TRANSACTIONS_TOPIC, partition_for(transactional_id, len(topic.partitions)))
        leader = broker.image.leader_of(place)
    if leader is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if leader.node_id == broker.node_id:
        return broker
    return broker.links.peer(leader.node_id) or ErrorCode.NETWORK_EXCEPTION


def _told(error: ErrorCode, version: int) -> ErrorCode:
    """Producers expect INVALID_PRODUCER_EPOCH here, and old ones do not know TRANSACTION_ABORTABLE."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < KNOWS_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return error
