"""TxnOffsetCommit: offsets within a transaction, by the group's shard; they count once the transaction
commits.

Partitions that do not exist are refused here. The others are written if the transaction's coordinator says
that the group is part of it (verification.py).
"""

from dataclasses import replace

from kelpie.broker.absent_partitions import merged, split
from kelpie.broker.broker import Broker
from kelpie.broker.call import Call, Relay
from kelpie.broker.shard_host import ShardHost
from kelpie.broker.verification import verify_offsets
from kelpie.coordinator.offset_commit import transaction_refused
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kelpie.wire.structs import TopicResults


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: TxnOffsetCommitRequest = call.message
    existing, absent = split(broker.image, request.topics)
    asked = replace(request, topics=existing)
    missing = [TopicResults(name=name, partitions=parts) for name, parts in absent.items()]

    def finish(response: TxnOffsetCommitResponse) -> None:
        call.answer(TxnOffsetCommitResponse(topics=merged(missing, response.topics)))

    if not existing:
        call.answer(TxnOffsetCommitResponse(topics=missing))
        return
    host = broker.groups.host_for(request.group_id, named=True)
    if not isinstance(host, ShardHost):
        finish(transaction_refused(asked, host))
        return

    def verified(error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            outcome = host.shard.commit_offsets_in_transaction(Relay(finish), asked, now)
            host.carry_out(outcome, now)
        else:
            finish(transaction_refused(asked, broker.groups.behaviour.commit_errors.get(error, error)))

    verify_offsets(broker, request, call.version, now, verified)
