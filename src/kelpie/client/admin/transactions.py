"""Open transactions, which hold the last stable offset of a partition back.

The leader tells the producer (DescribeProducers, since 2.8). Only the transaction coordinators know which
transaction that is (ListTransactions and DescribeTransactions, since 3.0).

A transaction that no coordinator knows hangs. But ListTransactions leaves out what the caller may not
describe, and what is kept in a partition of __transaction_state without a leader. So a transaction counts
as unknown to its coordinator only if every broker answered, every partition of that topic has a leader among
them, the caller may describe any transactional id, and the transaction is still open afterwards.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

from kelpie.client.admin.asking import Asking, together
from kelpie.client.admin.topics import ask_topics, best_views
from kelpie.client.client_errors import ClientError
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import plausible
from kelpie.model.words import numbered, ranges
from kelpie.observations import OpenTransaction
from kelpie.questions.question import by_topic
from kelpie.wire.api.describe_producers import DescribeProducersRequest
from kelpie.wire.api.describe_transactions import DescribeTransactionsRequest
from kelpie.wire.api.list_transactions import ListTransactionsRequest
from kelpie.wire.structs import TopicPartitionIndexes

UNKNOWN = "?"
"""The state of a transaction of which nobody can say whether its coordinator knows it."""
TRANSACTIONS_TOPIC = "__transaction_state"
_MOST_VIEWS = 2_000
_BEGINNINGS = "aZ0_"
"""Rights to names with one prefix must not pass for the right to all names."""


class _Transaction(NamedTuple):
    transactional_id: str
    state: str
    timeout_ms: int = -1


async def ask_transactions(asking: Asking, by_leader: Mapping[int, Sequence[TopicPartition]]) -> None:
    """Adds the transactions that are open in these partitions."""
    rows = await _ask_leaders(asking, by_leader)
    if not rows:
        return
    known, answered = await _ask_coordinators(asking, sorted({row.producer_id for row in rows}))
    asking.seen.transactions += [
        row._replace(**known[row.producer_id]._asdict()) for row in rows if row.producer_id in known
    ]
    unknown = [row for row in rows if row.producer_id not in known]
    if not unknown:
        return
    reason = await _hidden_because(asking, answered)
    if reason:
        asking.unasked("partition", sorted({row.name for row in unknown}), reason)
        asking.seen.transactions += [row._replace(state=UNKNOWN) for row in unknown]
        return
    # One that ended before its coordinator was asked is not unknown to it.
    still_open = {_identity(row) for row in await _ask_leaders(asking, _of(by_leader, unknown))}
    asking.seen.transactions += [row for row in unknown if _identity(row) in still_open]


def _identity(row: OpenTransaction) -> tuple[object, ...]:
    return row.name, row.producer_id, row.producer_epoch, row.started_at_offset


def _of(
    by_leader: Mapping[int, Sequence[TopicPartition]], rows: Iterable[OpenTransaction]
) -> dict[int, list[TopicPartition]]:
    wanted = {row.name for row in rows}
    asked: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for node, names in by_leader.items():
        asked[node] += [name for name in names if name in wanted]
    return {node: names for node, names in asked.items() if names}


async def _ask_leaders(
    asking: Asking, by_leader: Mapping[int, Sequence[TopicPartition]]
) -> list[OpenTransaction]:
    rows: list[OpenTransaction] = []
    await together(*(_ask_leader(asking, node, names, rows) for node, names in by_leader.items()))
    return rows


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
                plausible(producer.last_timestamp),
                coordinator_epoch=producer.coordinator_epoch,
                at=at,
                source=source,
            )
            for topic in response.topics
            for partition in topic.partitions
            for producer in partition.active_producers
            if producer.current_txn_start_offset >= 0
        ]


async def _ask_coordinators(
    asking: Asking, producers: Sequence[int]
) -> tuple[dict[int, _Transaction], set[int]]:
    """What coordinators know, by producer id, and which brokers answered."""
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
    return known, answered


async def _hidden_because(asking: Asking, answered: set[int]) -> str:
    """Why a coordinator may know a transaction that none of these brokers lists. Empty: none can."""
    begin = "Whether its transaction is known to a coordinator cannot be told: "
    silent = sorted(set(asking.nodes.brokers) - answered)
    if silent:
        return f"{begin}{numbered('broker', silent)} did not list transactions (possible since Kafka 3.0)."
    await ask_topics(asking, [TRANSACTIONS_TOPIC], _MOST_VIEWS)
    views = best_views(view for view in asking.seen.partitions if view.topic == TRANSACTIONS_TOPIC)
    if not views:
        return f"{begin}{TRANSACTIONS_TOPIC} cannot be described."
    leaderless = [name.partition for name, view in views.items() if view.leader not in answered]
    if leaderless:
        return (
            f"{begin}nobody answers for partition{'s' * (len(leaderless) > 1)} {ranges(leaderless)} of "
            f"{TRANSACTIONS_TOPIC}."
        )
    if not await _may_describe_all(asking, min(answered)):
        return f"{begin}the caller may not describe every transactional id (the right Describe on all)."
    return ""


async def _may_describe_all(asking: Asking, node: int) -> bool:
    """Asks for ids that do not exist. Rights are checked first, so a refusal is told from "not found"."""
    names = [f"{beginning}{uuid4().hex}" for beginning in _BEGINNINGS]
    try:
        response, _ = await asking.ask(node, DescribeTransactionsRequest(transactional_ids=names))
    except ClientError:
        return False
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    states = response.transaction_states
    return len(states) == len(names) and all(state.error_code != refused for state in states)
