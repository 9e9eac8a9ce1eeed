"""Topics, settings and reassignments as admin clients ask for them, and the errors they get."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pytest

from kelpie.broker import topic_names
from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode
from kelpie.wire.api.alter_configs import AlterableConfig as PlainConfig
from kelpie.wire.api.alter_configs import AlterConfigsRequest
from kelpie.wire.api.alter_configs import AlterConfigsResource as PlainResource
from kelpie.wire.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kelpie.wire.api.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kelpie.wire.api.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kelpie.wire.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kelpie.wire.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kelpie.wire.api.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from kelpie.wire.api.list_partition_reassignments import ListPartitionReassignmentsRequest
from kelpie.wire.schema import NO_UUID
from tests.broker.clients import metadata, produce, produced, read
from tests.broker.driver import PERSONAS, Cluster

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def create(cluster: Cluster, *topics: CreatableTopic, node: int = 1, dry_run: bool = False) -> list[Any]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=1000, validate_only=dry_run)
    return list(cluster.ask(node, request, 7).topics)


def wanted(
    name: str = "orders",
    partitions: int = 2,
    replication: int = 3,
    config: dict[str, str] | None = None,
    assignment: dict[int, list[int]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in (assignment or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()],
    )


def test_topic_is_created_as_asked() -> None:
    """The answer tells what was made, and every broker knows it at once."""
    cluster = Cluster()
    (made,) = create(cluster, wanted(config={"retention.ms": "5000"}), node=3)
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 3)
    shown = {it.name: (it.value, it.config_source) for it in made.configs}
    assert shown["retention.ms"] == ("5000", 1)
    assert shown["cleanup.policy"] == ("delete", 5)
    assert made.topic_id == cluster.topic_id("orders")
    assert len(metadata(cluster, 2, "orders").topics[0].partitions) == 2


def test_defaults_are_the_brokers() -> None:
    """−1 for partitions and replicas (KIP-464)."""
    cluster = Cluster(settings={"num.partitions": "5", "default.replication.factor": "2"})
    (made,) = create(cluster, wanted(partitions=-1, replication=-1))
    assert (made.num_partitions, made.replication_factor) == (5, 2)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wanted("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (wanted("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (wanted("dot_ted"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (wanted(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (wanted(replication=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wanted(replication=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wanted(config={"no.such": "1"}), ErrorCode.INVALID_CONFIG),
        (wanted(config={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (wanted(config={"segment.bytes": "1"}), ErrorCode.INVALID_CONFIG),
        (wanted(config={"cleanup.policy": "burn"}), ErrorCode.INVALID_CONFIG),
        (wanted(partitions=-1, replication=-1, assignment={1: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(partitions=-1, replication=-1, assignment={0: [9]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(partitions=-1, replication=-1, assignment={0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(partitions=-1, replication=-1, assignment={0: [3]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(assignment={0: [1]}), ErrorCode.INVALID_REQUEST),
    ],
)
def test_topics_that_cannot_be_created(topic: CreatableTopic, code: ErrorCode) -> None:
    """Names, numbers, settings, and assignments to brokers that are unknown or down (3)."""
    cluster = Cluster()
    cluster.create("there")
    cluster.create("dot.ted")
    cluster.lose(3)
    (refused,) = create(cluster, topic)
    assert refused.error_code == code
    assert refused.error_message


def test_topic_named_twice_in_one_request() -> None:
    """Neither is created: nobody knows which one was meant."""
    cluster = Cluster()
    answers = create(cluster, wanted(), wanted(partitions=9))
    assert {it.error_code for it in answers} == {ErrorCode.INVALID_REQUEST}
    assert "orders" not in cluster.fabric.controller.image.topics


@pytest.mark.parametrize(
    "topics",
    [
        [wanted(partitions=10_001)],
        [wanted(partitions=2**31 - 1)],
        [wanted("a", 5_000), wanted("b", 5_000), wanted("c", -1)],
        [wanted("a", 9_999), wanted("b", -1, -1, assignment={0: [1], 1: [2]})],
    ],
)
def test_more_partitions_than_kafka_makes_at_a_time_are_refused_together(
    topics: list[CreatableTopic],
) -> None:
    """One request could take all memory. The words are those of Kafka 4."""
    cluster = Cluster()
    answers = create(cluster, *topics)
    assert {it.error_code for it in answers} == {ErrorCode.POLICY_VIOLATION}
    assert {it.error_message for it in answers} == {"Excessively large number of partitions per request."}
    assert not {topic.name for topic in topics} & set(cluster.fabric.controller.image.topics)


def test_as_many_partitions_as_kafka_makes_at_a_time_can_be_had() -> None:
    """A topic that is named twice is not created, and does not count."""
    answers = create(Cluster(), wanted("a", 10_000), wanted("b", 1), wanted("b", 1), dry_run=True)
    assert [it.error_code for it in answers] == [0, *[ErrorCode.INVALID_REQUEST] * 2]


class _Names(Collection[str]):
    """Counts how many names are looked at."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self.looks = 0

    def __contains__(self, name: object) -> bool:
        self.looks += 1
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        for name in self._names:
            self.looks += 1
            yield name

    def __len__(self) -> int:
        return len(self._names)


@pytest.mark.parametrize(
    ("name", "collides"), [("a.b_c", "a_b.c"), ("a_b_c", "a_b.c"), ("a", ""), ("a.b", "")]
)
def test_a_name_is_compared_with_few_of_many(name: str, collides: str) -> None:
    """10,000 topics in one request would else be 50 million comparisons."""
    existing = _Names(["a_b.c", *(f"topic.{at}" for at in range(10_000))])
    if collides:
        with pytest.raises(Declined, match=f"collides with existing topic: {collides}"):
            topic_names.check(name, existing)
    else:
        topic_names.check(name, existing)
    assert existing.looks <= 6


def test_a_name_of_many_parts_is_compared_with_all() -> None:
    """There are more names that would meet it than names that exist."""
    many = "_".join("x" * 60)
    with pytest.raises(Declined, match="collides"):
        topic_names.check(many, [many.replace("_", ".")])


def test_validation_creates_nothing() -> None:
    """validate_only: the same answers, and no topic."""
    cluster = Cluster()
    assert create(cluster, wanted(), dry_run=True)[0].error_code == 0
    assert create(cluster, wanted(replication=7), dry_run=True)[0].error_code == 38
    assert not cluster.fabric.controller.image.topics


def test_isolated_broker_creates_nothing() -> None:
    """It cannot reach the controller."""
    cluster = Cluster()
    cluster.fabric.isolate(3, cluster.now)
    assert create(cluster, wanted(), node=3)[0].error_code == ErrorCode.NOT_CONTROLLER


def drop(cluster: Cluster, *topics: tuple[str | None, bytes], version: int = 6) -> list[int]:
    if version >= 6:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name, topic_id=it) for name, it in topics], timeout_ms=1000
        )
    else:
        request = DeleteTopicsRequest(topic_names=[name or "" for name, _ in topics], timeout_ms=1000)
    return [it.error_code for it in cluster.ask(1, request, version).responses]


def test_topics_are_deleted_by_name_and_by_id() -> None:
    """Whatever is wrong with one, the others go."""
    cluster = Cluster()
    partition = cluster.create("one")
    cluster.create("two")
    produced(cluster, partition, b"a")
    two = cluster.topic_id("two")
    assert drop(cluster, ("one", NO_UUID), (None, two), ("none", NO_UUID), (None, b"\7" * 16)) == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert not cluster.fabric.broker(2).image.topics
    assert produce(cluster, partition, b"a", node=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.create("one")
    assert read(cluster, partition) == []


@pytest.mark.parametrize(("version", "code"), [(2, 42), (3, 73), (6, 73)])
def test_deletion_may_be_switched_off(version: int, code: int) -> None:
    """delete.topic.enable=false; before version 3 there was no error of its own for it."""
    cluster = Cluster(settings={"delete.topic.enable": "false"})
    cluster.create("one")
    assert drop(cluster, ("one", NO_UUID), ("none", NO_UUID), version=version) == [code, code]


def grow(cluster: Cluster, count: int, nodes: list[list[int]] | None = None, name: str = "orders") -> int:
    given = None if nodes is None else [CreatePartitionsAssignment(broker_ids=it) for it in nodes]
    asked = CreatePartitionsTopic(name=name, count=count, assignments=given)
    request = CreatePartitionsRequest(topics=[asked], timeout_ms=1000, validate_only=False)
    return int(cluster.ask(1, request, 3).results[0].error_code)


def test_topics_grow_and_never_shrink() -> None:
    """New partitions are led at once; everything else is an error."""
    cluster = Cluster()
    cluster.create(partitions=2)
    assert grow(cluster, 4) == ErrorCode.NONE
    assert all(it.leader_id > 0 for it in metadata(cluster, 3, "orders").topics[0].partitions)
    assert grow(cluster, 4) == grow(cluster, 1) == ErrorCode.INVALID_PARTITIONS
    assert grow(cluster, 6, [[1, 2, 3]]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, 5, [[9, 8, 7]]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, 5, [[3, 2, 1]]) == ErrorCode.NONE
    assert grow(cluster, 10_006) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert grow(cluster, 2, name="none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def described(
    cluster: Cluster, kind: int, name: str, node: int = 1
) -> tuple[int, dict[str, tuple[str, int]]]:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)]
    )
    found = cluster.ask(node, request, 4).results[0]
    return found.error_code, {it.name: (it.value, it.config_source) for it in found.configs}


def alter(
    cluster: Cluster, kind: int, name: str, key: str, value: str | None, *, how: int = SET, dry: bool = False
) -> int:
    change = ConfigChange(name=key, config_operation=how, value=value)
    resource = IncrementalAlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry)
    return int(cluster.ask(1, request, 1).responses[0].error_code)


def test_settings_have_sources() -> None:
    """The topic's own, the broker's dynamic and static ones, and the default, in this order."""
    cluster = Cluster(settings={"log.retention.ms": "7000"})
    cluster.create(config={"segment.ms": "9"})
    code, shown = described(cluster, TOPIC, "orders")
    assert code == ErrorCode.NONE
    assert shown["segment.ms"] == ("9", 1)
    assert shown["retention.ms"] == ("7000", 4)
    assert shown["max.compaction.lag.ms"] == (str(2**63 - 1), 5)
    assert alter(cluster, BROKER, "", "log.retention.ms", "8000") == ErrorCode.NONE
    assert described(cluster, TOPIC, "orders")[1]["retention.ms"] == ("8000", 3)
    assert alter(cluster, BROKER, "1", "log.retention.ms", "9000") == ErrorCode.NONE
    assert described(cluster, TOPIC, "orders")[1]["retention.ms"] == ("9000", 2)
    assert described(cluster, BROKER, "1")[1]["log.retention.ms"] == ("9000", 2)
    assert described(cluster, BROKER, "2", node=2)[1]["log.retention.ms"] == ("8000", 3)
    assert alter(cluster, TOPIC, "orders", "retention.ms", "1") == ErrorCode.NONE
    assert described(cluster, TOPIC, "orders")[1]["retention.ms"] == ("1", 1)


def test_single_settings_are_changed() -> None:
    """Set, delete, append to a list, subtract from it; a trial changes nothing."""
    cluster = Cluster()
    cluster.create()
    steps = [("compact", SET), ("delete", APPEND), ("compact", SUBTRACT), (None, DELETE)]
    seen = []
    for value, how in steps:
        assert alter(cluster, TOPIC, "orders", "cleanup.policy", value, how=how) == ErrorCode.NONE
        seen.append(described(cluster, TOPIC, "orders")[1]["cleanup.policy"])
    assert seen == [("compact", 1), ("compact,delete", 1), ("delete", 1), ("delete", 5)]
    assert alter(cluster, TOPIC, "orders", "retention.ms", "1", dry=True) == ErrorCode.NONE
    assert described(cluster, TOPIC, "orders")[1]["retention.ms"][1] == 5


def test_all_settings_are_replaced() -> None:
    """AlterConfigs, the old way: what is not named falls back."""
    cluster = Cluster()
    cluster.create(config={"retention.ms": "5"})
    resource = PlainResource(
        resource_type=TOPIC, resource_name="orders", configs=[PlainConfig(name="segment.ms", value="9")]
    )
    answer = cluster.ask(1, AlterConfigsRequest(resources=[resource], validate_only=False), 2)
    assert answer.responses[0].error_code == ErrorCode.NONE
    shown = described(cluster, TOPIC, "orders")[1]
    assert (shown["segment.ms"], shown["retention.ms"][1]) == (("9", 1), 5)


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "code"),
    [
        (TOPIC, "none", "retention.ms", "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "orders", "no.such", "1", ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", "log.retention.ms", "1", ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", "retention.ms", "soon", ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", "min.insync.replicas", "0", ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", "unclean.leader.election.enable", "maybe", ErrorCode.INVALID_CONFIG),
        (BROKER, "1", "log.segment.bytes", "1", ErrorCode.INVALID_CONFIG),
        (BROKER, "1", "offsets.topic.num.partitions", "9", ErrorCode.INVALID_REQUEST),
        (BROKER, "77", "log.retention.ms", "1", ErrorCode.INVALID_REQUEST),
        (99, "x", "y", "z", ErrorCode.INVALID_REQUEST),
    ],
)
def test_settings_that_cannot_be(kind: int, name: str, key: str, value: str, code: ErrorCode) -> None:
    """Unknown resources, unknown names, impossible values, and what only a restart can change."""
    cluster = Cluster()
    partition = cluster.create()
    assert alter(cluster, kind, name, key, value) == code
    assert produced(cluster, partition, b"still works") == 0


def test_settings_take_effect() -> None:
    """min.insync.replicas and unclean elections, for a topic and for all brokers."""
    cluster = Cluster()
    partition = cluster.create(assignment={0: [2, 3]})
    cluster.fabric.shrink_isr(partition, [2], cluster.now)
    assert alter(cluster, TOPIC, "orders", "min.insync.replicas", "2") == ErrorCode.NONE
    assert produce(cluster, partition, b"a").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert alter(cluster, BROKER, "", "unclean.leader.election.enable", "true") == ErrorCode.NONE
    cluster.lose(2)
    assert cluster.leader(partition) == 3


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_old_names_of_settings(persona: str) -> None:
    """message.format.version and its like went with Kafka 4."""
    cluster = Cluster(persona=persona)
    (made,) = create(cluster, wanted(config={"message.format.version": "2.8"}))
    assert made.error_code == (ErrorCode.INVALID_CONFIG if persona == "4.3" else ErrorCode.NONE)


def move(cluster: Cluster, nodes: list[int] | None, topic: str = "orders") -> int:
    asked = ReassignablePartition(partition_index=0, replicas=nodes)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[asked])], timeout_ms=1000
    )
    return int(cluster.ask(1, request, 0).responses[0].partitions[0].error_code)


def moving(cluster: Cluster) -> list[tuple[list[int], list[int], list[int]]]:
    answer = cluster.ask(1, ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None), 0)
    return [
        (it.replicas, it.adding_replicas, it.removing_replicas)
        for topic in answer.topics
        for it in topic.partitions
    ]


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_replicas_move(persona: str) -> None:
    """New ones catch up, then the old ones go, and with them the lead, in one request where nothing lags."""
    cluster = Cluster(4, persona)
    partition = cluster.create(assignment={0: [1, 2]})
    produced(cluster, partition, b"a")
    assert move(cluster, [3, 4]) == ErrorCode.NONE
    state = cluster.state(partition)
    assert (state.replicas, state.isr, state.leader) == ((3, 4), (3, 4), 3)
    assert moving(cluster) == []
    assert partition not in cluster.fabric.broker(1).replicas
    assert read(cluster, partition) == [b"a"]


def test_move_waits_for_a_replica_that_lags_and_can_be_cancelled() -> None:
    """Until then both sets are there; cancelled, all is as before."""
    cluster = Cluster(4)
    partition = cluster.create(assignment={0: [1, 2]})
    produced(cluster, partition, b"a")
    assert move(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    cluster.fabric.lag(4)
    assert move(cluster, [4, 1]) == ErrorCode.NONE
    assert moving(cluster) == [([4, 1, 2], [4], [2])]
    assert cluster.state(partition).isr == (1, 2)
    assert move(cluster, None) == ErrorCode.NONE
    state = cluster.state(partition)
    assert (state.replicas, state.isr, state.leader) == ((1, 2), (1, 2), 1)
    assert move(cluster, [4, 1]) == ErrorCode.NONE
    cluster.fabric.catch_up(4, None, cluster.now)
    assert (cluster.state(partition).replicas, cluster.leader(partition)) == ((4, 1), 1)


def test_replicas_become_fewer() -> None:
    """Nothing has to be waited for; whoever is dropped forgets its log, and the epoch fences it."""
    cluster = Cluster()
    partition = cluster.create()
    assert move(cluster, [2]) == ErrorCode.NONE
    state = cluster.state(partition)
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((2,), (2,), 2, 1)
    assert moving(cluster) == []


def test_moves_that_cannot_be() -> None:
    """To nowhere, to brokers that do not exist, of partitions that do not exist."""
    cluster = Cluster()
    cluster.create()
    for nodes in ([], [1, 1], [1, 9]):
        assert move(cluster, nodes) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, [1], topic="none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
