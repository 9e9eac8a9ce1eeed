"""OffsetCommit before it reaches a group: which partitions there are, and how often each is answered."""

import pytest

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.clients import commit, committed, coordinator
from tests.broker.driver import PERSONAS, SMALL, Cluster


@pytest.mark.parametrize("persona", PERSONAS)
def test_0_9_takes_offsets_of_partitions_that_do_not_exist(persona: str) -> None:
    """It looks for the topic only. Seen on real 0.9.0.1."""
    cluster = Cluster(persona=persona, settings=SMALL)
    partition = cluster.create()
    node = coordinator(cluster, "g")
    beyond = TopicPartition(partition.topic, 99)
    taken = persona == "0.9"
    code = ErrorCode.NONE if taken else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(cluster, "g", beyond, 5, node=node) == code
    assert committed(cluster, "g", beyond, node=node) == (5 if taken else -1)
    nowhere = TopicPartition("unheard-of", 0)
    assert commit(cluster, "g", nowhere, 5, node=node) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("persona", PERSONAS)
def test_partition_named_twice_is_answered_once_up_to_3_9(persona: str) -> None:
    """Scala put them into a map, so that the last one counts; Kafka 4 answers each."""
    cluster = Cluster(persona=persona, settings=SMALL)
    partition = cluster.create()
    node = coordinator(cluster, "g")
    parts = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        for offset in (1, 2)
    ]
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name=partition.topic, partitions=parts)]
    )
    (topic,) = cluster.ask(node, request, 2).topics
    assert len(topic.partitions) == (2 if persona == "4.3" else 1)
    assert committed(cluster, "g", partition, node=node) == 2


@pytest.mark.parametrize("persona", PERSONAS)
def test_whoever_comes_back_is_last_in_the_isr(persona: str) -> None:
    """Every release keeps those who stayed in their places; tools show the order to people."""
    cluster = Cluster(persona=persona, settings=SMALL)
    partition = cluster.create()
    cluster.lose(1)
    cluster.start(1)
    cluster.advance(1000)
    assert cluster.state(partition).isr == (2, 3, 1)
