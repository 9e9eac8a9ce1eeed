"""Partitions that do not exist: a request gets an answer for each, also if it names a topic twice."""

import pytest

from kelpie.errors import ErrorCode
from kelpie.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kelpie.wire.structs import TopicResults
from tests.broker.clients import commit, coordinator
from tests.broker.driver import PERSONAS, Cluster

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _cluster(persona: str) -> tuple[Cluster, int]:
    """A topic with partition 0 only, in which the group g has committed; and the coordinator of g."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    node = coordinator(cluster, "g")
    assert commit(cluster, "g", partition, 5, node=node) == ErrorCode.NONE
    return cluster, node


def _answered(topics: list[TopicResults]) -> list[tuple[str, int, int]]:
    return [(topic.name, row.partition_index, row.error_code) for topic in topics for row in topic.partitions]


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_txn_offset_commit_answers_a_topic_named_twice(persona: str) -> None:
    """A client waits for the error of every partition that it named."""
    cluster, node = _cluster(persona)
    topics = [
        TxnOffsetCommitRequestTopic(
            name="orders",
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=1, committed_metadata=""
                )
            ],
        )
        for index in (7, 8)
    ]
    request = TxnOffsetCommitRequest(
        transactional_id="tx", group_id="g", producer_id=1, producer_epoch=0, topics=topics
    )
    answered = _answered(cluster.ask(node, request, 2).topics)
    assert answered == [("orders", 7, UNKNOWN), ("orders", 8, UNKNOWN)]


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_offset_delete_answers_a_topic_named_twice(persona: str) -> None:
    """Also beside a partition that exists, whose offset is deleted."""
    cluster, node = _cluster(persona)
    topics = [
        OffsetDeleteRequestTopic(
            name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=index)]
        )
        for index in (7, 8, 0)
    ]
    answer = cluster.ask(node, OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert answer.error_code == ErrorCode.NONE
    answered = _answered(answer.topics)
    assert answered == [("orders", 7, UNKNOWN), ("orders", 8, UNKNOWN), ("orders", 0, ErrorCode.NONE)]
