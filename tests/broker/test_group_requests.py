"""What a broker decides about group requests before, or after, the group's coordinator does."""

from typing import Any

import pytest

from kelpie.errors import ErrorCode
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.end_txn import EndTxnRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.api.join_group import JoinGroupRequest
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kelpie.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kelpie.wire.api.sync_group import SyncGroupRequest
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.broker.clients import commit, committed, coordinator
from tests.broker.driver import Cluster

GROUP = "billing"
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
OTHER_ID = b"\x5a" * 16


def codes(response: Any) -> list[tuple[str, int, int]]:
    return [
        (topic.name, part.partition_index, part.error_code)
        for topic in response.topics
        for part in topic.partitions
    ]


@pytest.mark.parametrize(("protocol_type", "protocol"), [(None, "range"), ("consumer", None), (None, None)])
def test_sync_must_name_the_protocol_since_version_5(protocol_type: str | None, protocol: str | None) -> None:
    """KIP-559; a client that forgets it is refused before anyone looks for the group."""
    cluster = Cluster(1)
    request = SyncGroupRequest(
        group_id="",
        generation_id=1,
        member_id="m",
        protocol_type=protocol_type,
        protocol_name=protocol,
        assignments=[],
    )
    assert cluster.ask(1, request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("version", "told"), [(6, ""), (7, None)])
def test_refused_join_has_no_protocol(version: int, told: str | None) -> None:
    """It is null where null can be told."""
    request = JoinGroupRequest(
        group_id="", session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=[]
    )
    answer = Cluster(1).ask(1, request, version)
    assert (answer.error_code, answer.protocol_name) == (ErrorCode.INVALID_GROUP_ID, told)


@pytest.mark.parametrize(("persona", "operations"), [("2.8", 328), ("3.9", 328), ("4.3", 3400)])
def test_without_an_authorizer_everything_is_allowed(persona: str, operations: int) -> None:
    """Bits of AclOperation; Kafka 4 adds those for the configuration of groups."""
    cluster = Cluster(1, persona, {"offsets.topic.replication.factor": "1"})
    node = coordinator(cluster, GROUP)
    request = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=True)
    assert cluster.ask(node, request, 5).groups[0].authorized_operations == operations
    request = DescribeGroupsRequest(groups=[GROUP])
    assert cluster.ask(node, request, 5).groups[0].authorized_operations == -(2**31)


def test_find_coordinator_explains_itself_in_the_older_versions() -> None:
    """Since version 4 only a key type that nobody has heard of is worth a message."""
    cluster = Cluster()
    missing = cluster.ask(1, FindCoordinatorRequest(key=GROUP), 3)
    assert missing.error_message == "The coordinator is not available."
    assert cluster.ask(1, FindCoordinatorRequest(key=GROUP), 3).error_message == "NONE"
    strange = cluster.ask(1, FindCoordinatorRequest(key=GROUP, key_type=7), 3)
    assert strange.error_code == ErrorCode.INVALID_REQUEST
    many = cluster.ask(1, FindCoordinatorRequest(coordinator_keys=["a"], key_type=7), 4).coordinators[0]
    assert (many.error_code, many.error_message) == (ErrorCode.INVALID_REQUEST, strange.error_message)
    share = cluster.ask(1, FindCoordinatorRequest(coordinator_keys=["a"], key_type=2), 4).coordinators[0]
    assert (share.error_code, share.error_message) == (ErrorCode.INVALID_REQUEST, "")


def test_unknown_partitions_stand_first_in_the_answer_to_a_commit() -> None:
    """Kafka refuses them by itself, and appends what the coordinator says."""
    cluster = Cluster()
    cluster.create("a")
    cluster.create("b")
    node = coordinator(cluster, GROUP)
    topics = [
        OffsetCommitRequestTopic(
            name=name,
            partitions=[
                OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
                for index in indexes
            ],
        )
        for name, indexes in (("a", [0]), ("b", [0, 9]), ("none", [0]))
    ]
    answer = cluster.ask(node, OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
    assert codes(answer) == [("b", 9, UNKNOWN), ("b", 0, NONE), ("none", 0, UNKNOWN), ("a", 0, NONE)]


def test_commit_of_nothing_creates_no_group() -> None:
    """The broker answers it without the coordinator."""
    cluster = Cluster()
    node = coordinator(cluster, GROUP)
    assert cluster.ask(node, OffsetCommitRequest(group_id=GROUP, topics=[]), 8).topics == []
    assert cluster.ask(node, DescribeGroupsRequest(groups=[GROUP]), 5).groups[0].group_state == "Dead"


def test_unknown_partitions_cannot_be_deleted_from_a_group() -> None:
    """They stand first; but a group that is not there is all that is told of it."""
    cluster = Cluster()
    partition = cluster.create("a")
    node = coordinator(cluster, GROUP)
    topics = [
        OffsetDeleteRequestTopic(
            name=name,
            partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for name, indexes in (("a", [0, 9]), ("none", [0]))
    ]
    request = OffsetDeleteRequest(group_id=GROUP, topics=topics)
    missing = cluster.ask(node, request, 0)
    assert (missing.error_code, missing.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    assert commit(cluster, GROUP, partition, 5, node=node) == NONE
    answer = cluster.ask(node, request, 0)
    assert codes(answer) == [("a", 9, UNKNOWN), ("a", 0, NONE), ("none", 0, UNKNOWN)]
    assert committed(cluster, GROUP, partition, node=node) == -1


def test_offsets_by_topic_id() -> None:
    """OffsetFetch v10: all of a group have their ids; one that nobody knows is an error, at the end."""
    cluster = Cluster()
    partition = cluster.create("a")
    node = coordinator(cluster, GROUP)
    assert commit(cluster, GROUP, partition, 5, node=node) == NONE
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
    (topic,) = cluster.ask(node, everything, 10).groups[0].topics
    assert (topic.topic_id, topic.partitions[0].committed_offset) == (cluster.topic_id("a"), 5)
    asked = [
        OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0])
        for each in (OTHER_ID, cluster.topic_id("a"))
    ]
    some = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=asked)])
    known, unknown = cluster.ask(node, some, 10).groups[0].topics
    assert (known.topic_id, known.partitions[0].error_code) == (cluster.topic_id("a"), NONE)
    assert (unknown.topic_id, unknown.partitions[0].error_code) == (OTHER_ID, ErrorCode.UNKNOWN_TOPIC_ID)


class Transaction:
    """A transactional producer that commits offsets."""

    def __init__(self, persona: str = "4.3") -> None:
        self.cluster = Cluster(persona=persona)
        self.partition = self.cluster.create("a")
        self.group_node = coordinator(self.cluster, GROUP)
        self.node = coordinator(self.cluster, "tx", kind=1)
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        answer = self.cluster.ask(self.node, request, 4)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def add_group(self) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=GROUP,
        )
        assert self.cluster.ask(self.node, request, 3).error_code == NONE

    def commit(self, version: int = 3, topic: str = "a", epoch: int = 0, producer_id: int = -1) -> ErrorCode:
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=GROUP,
            producer_id=self.producer_id if producer_id < 0 else producer_id,
            producer_epoch=self.epoch + epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=5, committed_metadata=""
                        )
                    ],
                )
            ],
        )
        (topic_answer,) = self.cluster.ask(self.group_node, request, version).topics
        return ErrorCode(topic_answer.partitions[0].error_code)

    def end(self, version: int) -> None:
        request = EndTxnRequest(
            transactional_id="tx", producer_id=self.producer_id, producer_epoch=self.epoch, committed=True
        )
        assert self.cluster.ask(self.node, request, version).error_code == NONE
        self.cluster.advance(100)

    @property
    def offset(self) -> int:
        return int(committed(self.cluster, GROUP, self.partition, node=self.group_node))


@pytest.mark.parametrize("persona", ["3.9", "4.3"])
def test_group_that_is_not_part_of_the_transaction_cannot_commit_in_it(persona: str) -> None:
    """KIP-890: otherwise offsets of a transaction that is over could stay open for ever."""
    transaction = Transaction(persona)
    assert transaction.commit(version=3) == ErrorCode.INVALID_TXN_STATE
    assert transaction.commit(version=4) == ErrorCode.TRANSACTION_ABORTABLE
    transaction.add_group()
    assert transaction.commit() == NONE
    assert transaction.commit() == NONE, "the log has the proof already"
    transaction.end(3)
    assert transaction.offset == 5


def test_offsets_of_kafka_2_8_are_not_verified() -> None:
    """It has no such question, and believes the client."""
    transaction = Transaction("2.8")
    assert transaction.commit() == NONE


def test_commit_adds_the_group_to_the_transaction_since_version_5() -> None:
    """Without AddOffsetsToTxn, the marker reaches the offsets all the same."""
    transaction = Transaction()
    assert transaction.commit(version=5) == NONE
    assert transaction.offset == -1
    transaction.end(5)
    assert transaction.offset == 5


def test_wrong_producers_cannot_commit_offsets() -> None:
    """Another id, and another epoch, which is told as producers know it."""
    transaction = Transaction()
    transaction.add_group()
    assert transaction.commit(producer_id=4711) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert transaction.commit(epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_unknown_topic_is_refused_before_the_transaction_is_looked_at() -> None:
    """As in OffsetCommit."""
    assert Transaction().commit(topic="none", producer_id=4711) == UNKNOWN
