"""ListTransactions: those that this broker coordinates."""

from itertools import chain

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.coordinator.transactions import list_transactions
from kelpie.model.time import Instant
from kelpie.wire.api.list_transactions import ListTransactionsRequest


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: ListTransactionsRequest = call.message
    shards = [host.shard for host in broker.transactions.hosts.values()]
    transactions = chain.from_iterable(shard.transactions.values() for shard in shards)
    call.answer(list_transactions(transactions, request, now))
