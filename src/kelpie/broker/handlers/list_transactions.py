"""ListTransactions: those that this broker coordinates."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.coordinator.transactions import list_transactions
from kelpie.model.time import Instant
from kelpie.wire.api.list_transactions import ListTransactionsRequest


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: ListTransactionsRequest = call.message
    shards = [host.shard for host in broker.transactions.hosts.values()]
    call.answer(list_transactions(shards, request, now))
