"""DescribeTransactions: state of transactional ids, by their coordinators."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.model.time import Instant
from kelpie.wire.api import describe_transactions as wire


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DescribeTransactionsRequest = call.message
    states = [_describe(broker, transactional_id) for transactional_id in request.transactional_ids]
    call.answer(wire.DescribeTransactionsResponse(transaction_states=states))


def _describe(broker: Broker, transactional_id: str) -> wire.DescribedTransaction:
    host = broker.transactions.host_for(transactional_id)
    if isinstance(host, ShardHost):
        described: wire.DescribedTransaction = host.shard.describe(transactional_id)
        return described
    return wire.DescribedTransaction(
        error_code=host,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=-1,
        producer_id=-1,
        producer_epoch=-1,
        topics=[],
    )
