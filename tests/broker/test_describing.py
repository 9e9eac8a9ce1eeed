"""What brokers tell of themselves: APIs, cluster, partitions page by page, logs, producers."""

from typing import Any

import pytest

from kelpie.broker import handlers
from kelpie.errors import ErrorCode
from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.describe_cluster import DescribeClusterRequest
from kelpie.wire.api.describe_log_dirs import DescribeLogDirsRequest
from kelpie.wire.api.describe_producers import DescribeProducersRequest
from kelpie.wire.api.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from kelpie.wire.api.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
)
from kelpie.wire.api.describe_topic_partitions import (
    TopicRequest as AskedTopic,
)
from kelpie.wire.api.list_groups import ListGroupsRequest
from kelpie.wire.structs import TopicPartitionIndexes
from tests.broker.clients import produced
from tests.broker.driver import PERSONAS, Cluster
from tests.broker.test_fetch import Producer


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_what_is_advertised_is_served(persona: str) -> None:
    """An API that the lab does not serve is not advertised."""
    cluster = Cluster(persona=persona)
    answer = cluster.ask(1, ApiVersionsRequest(), 0)
    told = {it.api_key: (it.min_version, it.max_version) for it in answer.api_keys}
    assert told[3][1] == cluster.latest(3)
    assert all(handlers.find(key) is not None for key in told)


def test_kafka_0_9_knows_no_api_versions() -> None:
    """It closes the connection, by which newer clients know how old it is."""
    cluster = Cluster(persona="0.9")
    assert cluster.send(1, ApiVersionsRequest(), 0).refused
    assert 18 not in cluster.persona.versions
    assert cluster.ask(1, ListGroupsRequest(), 0).error_code == ErrorCode.NONE


def test_dead_broker_refuses_everything() -> None:
    """Whoever still reaches its socket is cut off."""
    cluster = Cluster()
    cluster.lose(2)
    assert cluster.send(2, ApiVersionsRequest(), 0).refused


def test_cluster_is_described_with_fenced_brokers_on_request() -> None:
    """Version 2 shows brokers that are registered and down."""
    cluster = Cluster(racks=("a", "b", "c"))
    cluster.lose(3)
    plain = cluster.ask(1, DescribeClusterRequest(include_cluster_authorized_operations=False), 1)
    assert [(it.broker_id, it.rack) for it in plain.brokers] == [(1, "a"), (2, "b")]
    fenced = cluster.ask(
        1, DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True), 2
    )
    assert [(it.broker_id, it.is_fenced) for it in fenced.brokers] == [(1, False), (2, False), (3, True)]
    wrong = cluster.ask(
        1, DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2), 1
    )
    assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def page(cluster: Cluster, limit: int, cursor: tuple[str, int] | None, *names: str) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[AskedTopic(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return cluster.ask(1, request, 0)


def test_partitions_come_page_by_page() -> None:
    """The cursor says where the next page begins; all pages together are everything, once."""
    cluster = Cluster()
    cluster.create("b", partitions=3)
    cluster.create("a", partitions=2)
    seen, cursor = [], None
    for _ in range(9):
        answer = page(cluster, 2, cursor)
        seen += [(topic.name, it.partition_index) for topic in answer.topics for it in topic.partitions]
        if answer.next_cursor is None:
            break
        cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]
    missing = page(cluster, 2000, None, "none", "a")
    assert [(it.name, it.error_code) for it in missing.topics] == [("a", 0), ("none", 3)]


def test_a_cursor_that_cannot_be_is_no_way_around_the_size_of_a_page() -> None:
    """Behind the end of its topic: the next topic begins, and the page is no longer than asked for."""
    cluster = Cluster()
    cluster.create("a", partitions=2)
    cluster.create("b", partitions=3)
    answer = page(cluster, 2, ("a", 2**31 - 1))
    found = [(topic.name, it.partition_index) for topic in answer.topics for it in topic.partitions]
    assert found == [("b", 0), ("b", 1)]
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("b", 2)
    gone = page(cluster, 2, ("aa", 7))
    assert [it.name for it in gone.topics] == ["b"]
    refused = page(cluster, 2, ("a", -1), "a")
    assert [(it.name, it.error_code, it.partitions) for it in refused.topics] == [
        ("a", ErrorCode.INVALID_REQUEST, [])
    ]


def test_a_topic_that_is_named_twice_is_described_once() -> None:
    """As Kafka does: names are a set."""
    cluster = Cluster()
    cluster.create("a", partitions=1)
    assert [it.name for it in page(cluster, 2000, None, "a", "none", "a", "none").topics] == ["a", "none"]


def test_eligible_replicas_are_described() -> None:
    """As kafka-topics shows them on 4.3.1: Isr empty, Elr and LastKnownElr name the last one."""
    cluster = Cluster()
    cluster.create(assignment={0: [2, 3]})
    cluster.lose(3, 2)
    found = page(cluster, 2000, None, "orders").topics[0].partitions[0]
    assert (found.error_code, found.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (found.isr_nodes, found.eligible_leader_replicas, found.last_known_elr) == ([], [2], [2])
    assert found.offline_replicas == [2, 3]


def test_logs_are_described_by_size() -> None:
    """Each broker tells of its own replicas."""
    cluster = Cluster()
    partition = cluster.create(replication=1)
    produced(cluster, partition, b"a" * 100)
    sizes = {}
    for node in (1, 2):
        (folder,) = cluster.ask(node, DescribeLogDirsRequest(topics=None), 4).results
        sizes[node] = [it.partition_size for topic in folder.topics for it in topic.partitions]
    assert sizes == {1: [cluster.replica(1, partition).log.size], 2: []}


def test_producers_are_described_where_they_lead() -> None:
    """An open transaction shows where it began; other brokers do not know."""
    cluster = Cluster()
    partition = cluster.create()
    producer = Producer(cluster, partition)
    producer.send(b"a", b"b")
    request = DescribeProducersRequest(topics=[TopicPartitionIndexes(name="orders", partition_indexes=[0])])
    (found,) = cluster.ask(1, request, 0).topics[0].partitions[0].active_producers
    assert (found.producer_id, found.last_sequence, found.current_txn_start_offset) == (producer.id, 1, 0)
    assert cluster.ask(2, request, 0).topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_leader_of_the_quorum_tells_its_time() -> None:
    """Kafka says of the leader itself that it was caught up just now: the only clock that it tells."""
    cluster = Cluster()
    asked = RequestTopicData(
        topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)]
    )
    (topic,) = cluster.ask(1, DescribeQuorumRequest(topics=[asked]), 2).topics
    (partition,) = topic.partitions
    (voter,) = partition.current_voters
    assert voter.replica_id == partition.leader_id
    assert voter.last_caught_up_timestamp == cluster.now
