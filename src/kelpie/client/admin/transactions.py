"""Open transactions, which hold the last stable offset of a partition back.

The leader tells the producer (DescribeProducers, since 2.8). Only the transaction coordinators know which
transaction that is (ListTransactions and DescribeTransactions, since 3.0). A transaction that no coordinator
knows hangs.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kelpie.client.admin.asking import Asking, together
from kelpie.client.client_errors import ClientError
from kelpie.model.names import TopicPartition
from kelpie.observations import OpenTransaction
from kelpie.questions.question import by_topic
from kelpie.wire.api.describe_producers import DescribeProducersRequest
from kelpie.wire.api.describe_transactions import DescribeTransactionsRequest
from kelpie.wire.api.list_transactions import ListTransactionsRequest
from kelpie.wire.structs import TopicPartitionIndexes

UNKNOWN = "?"
"""The state of a transaction whose coordinator could not be asked."""


class _Transaction(NamedTuple):
    transactional_id: str
    state: str
    timeout_ms: int = -1


async def ask_transactions(asking: Asking, by_leader: Mapping[int, Sequence[TopicPartition]]) -> None:
    """Adds the transactions that are open in these partitions."""
    rows: list[OpenTransaction] = []
    await together(*(_ask_leader(asking, node, names, rows) for node, names in by_leader.items()))
    if not rows:
        return
    known, complete = await _ask_coordinators(asking, sorted({row.producer_id for row in rows}))
    nothing = _Transaction("", "" if complete else UNKNOWN)
    for row in rows:
        transaction = known.get(row.producer_id, nothing)
        asking.seen.transactions.append(row._replace(**transaction._asdict()))


async def _ask_leader(
    asking: Asking, node: int, names: Sequence[TopicPartition], rows: list[OpenTransaction]
) -> None:
    topics = by_topic(names).items()
    wanted = [TopicPartitionIndexes(name=topic, partition_indexes=numbers) for topic, numbers in topics]
    source = asking.source(node)
    why = f"An open transaction holds it back; whose, {source} did not tell."
    with asking.noting("partition", names, source, why):
        response, at = await asking.ask(node, DescribeProducersRequest(topics=wanted))
        rows += [
            OpenTransaction(
                topic.name,
                partition.partition_index,
                producer.producer_id,
                producer.producer_epoch,
                producer.current_txn_start_offset,
                producer.last_timestamp if producer.last_timestamp >= 0 else None,
                coordinator_epoch=producer.coordinator_epoch,
                at=at,
                source=source,
            )
            for topic in response.topics
            for partition in topic.partitions
            for producer in partition.active_producers
            if producer.current_txn_start_offset >= 0
        ]


async def _ask_coordinators(asking: Asking, producers: Sequence[int]) -> tuple[dict[int, _Transaction], bool]:
    """What coordinators know, by producer id, and whether all of them were asked."""
    known: dict[int, _Transaction] = {}
    answered: set[int] = set()

    async def ask(node: int) -> None:
        try:
            request = ListTransactionsRequest(state_filters=[], producer_id_filters=list(producers))
            response, _ = await asking.ask(node, request)
            if response.error_code:
                return
            for entry in response.transaction_states:
                known[entry.producer_id] = _Transaction(entry.transactional_id, entry.transaction_state)
            ids = [entry.transactional_id for entry in response.transaction_states]
            if ids:
                described, _ = await asking.ask(node, DescribeTransactionsRequest(transactional_ids=ids))
                for state in described.transaction_states:
                    if not state.error_code:
                        known[state.producer_id] = _Transaction(
                            state.transactional_id, state.transaction_state, state.transaction_timeout_ms
                        )
            answered.add(node)
        except ClientError:
            return  # Then not all were asked, which the rows say.

    await together(*map(ask, asking.reached))
    return known, answered >= set(asking.nodes.brokers)
