"""Metadata, by release and version: what a client hears of brokers, leaders and replicas."""

import pytest

from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.errors import ErrorCode
from kelpie.wire.schema import NO_UUID
from tests.broker.clients import metadata
from tests.broker.driver import PERSONAS, Cluster

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
LATER = PERSONAS[1:]


def first(answer: object) -> tuple[int, int, list[int], list[int]]:
    """Error, leader, replicas and ISR of the first partition of the first topic."""
    found = answer.topics[0].partitions[0]  # type: ignore[attr-defined]
    return found.error_code, found.leader_id, found.replica_nodes, found.isr_nodes


@pytest.mark.parametrize("persona", PERSONAS)
def test_healthy_partition_is_told_as_it_is(persona: str) -> None:
    """The plain case, in the oldest and the newest version that the release speaks."""
    cluster = Cluster(persona=persona)
    cluster.create()
    for version in (0, cluster.latest(3)):
        answer = metadata(cluster, 1, "orders", version=version)
        assert first(answer) == (0, 1, [1, 2, 3], [1, 2, 3])
        assert [(it.node_id, it.host, it.port) for it in answer.brokers] == [
            (1, "host1", 9091),
            (2, "host2", 9092),
            (3, "host3", 9093),
        ]


@pytest.mark.parametrize("persona", PERSONAS)
def test_version_0_cuts_dead_replicas_and_says_so(persona: str) -> None:
    """REPLICA_NOT_AVAILABLE comes with a leader: clients must take it for success."""
    cluster = Cluster(persona=persona)
    cluster.create()
    cluster.lose(3)
    answer = metadata(cluster, 1, "orders", version=0)
    assert first(answer) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1, 2], [1, 2])
    assert [it.node_id for it in answer.brokers] == [1, 2]


@pytest.mark.parametrize("persona", LATER)
@pytest.mark.parametrize("version", [1, 5, 6, 8, 11])
def test_later_versions_do_not_filter(persona: str, version: int) -> None:
    """From version 1 on dead replicas stay in the list, and since 5 they are told apart."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    cluster.lose(3)
    answer = metadata(cluster, 1, "orders", version=version)
    assert first(answer) == (0, 1, [1, 2, 3], [1, 2])
    found = answer.topics[0].partitions[0]
    assert found.offline_replicas == ([3] if version >= 5 else [])
    assert found.leader_epoch == (cluster.state(partition).leader_epoch if version >= 7 else -1)


def test_kafka_0_9_hides_the_isr_of_a_leaderless_partition() -> None:
    """0.9 told neither leader nor ISR, and of the replicas only those alive."""
    cluster = Cluster(persona="0.9", settings={"unclean.leader.election.enable": "false"})
    cluster.create(assignment={0: [2, 3]})
    cluster.lose(2, 3)
    assert first(metadata(cluster, 1, "orders", version=0)) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [], [])


@pytest.mark.parametrize(("persona", "isr"), [("2.8", [3]), ("3.9", [3]), ("4.3", [])])
@pytest.mark.parametrize("version", [1, 11])
def test_leaderless_partition_tells_its_isr(persona: str, isr: list[int], version: int) -> None:
    """Since 2.4 the ISR is told; with eligible leader replicas (4.x) it is empty."""
    cluster = Cluster(persona=persona)
    cluster.create(assignment={0: [2, 3]})
    cluster.lose(2, 3)
    answer = metadata(cluster, 1, "orders", version=version)
    assert first(answer) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [2, 3], isr)


@pytest.mark.parametrize("persona", PERSONAS)
def test_leader_that_died_unnoticed_is_still_named(persona: str) -> None:
    """Until its session runs out, the image knows nothing: clients run into the dead broker."""
    cluster = Cluster(persona=persona)
    cluster.create()
    cluster.fabric.kill(1, cluster.now)
    cluster.advance(499)
    assert first(metadata(cluster, 2, "orders", version=0))[:2] == (0, 1)
    cluster.advance(1)
    assert first(metadata(cluster, 2, "orders", version=0))[1] == 2


def test_frozen_broker_tells_of_yesterday() -> None:
    """Each broker has an image of its own; a frozen one names brokers and leaders that are gone."""
    cluster = Cluster()
    cluster.create()
    cluster.fabric.freeze_metadata(3)
    cluster.lose(1)
    assert first(metadata(cluster, 2, "orders"))[1] == 2
    stale = metadata(cluster, 3, "orders")
    assert first(stale) == (0, 1, [1, 2, 3], [1, 2, 3])
    assert [it.node_id for it in stale.brokers] == [1, 2, 3]
    cluster.fabric.thaw_metadata(3, cluster.now)
    assert first(metadata(cluster, 3, "orders"))[1] == 2


def test_frozen_broker_that_restarts_learns_once_more() -> None:
    """A restart reads the image anew, and that one stays."""
    cluster = Cluster()
    cluster.create()
    cluster.fabric.freeze_metadata(3)
    cluster.lose(1)
    cluster.fabric.stop(3, cluster.now)
    cluster.start(3)
    assert first(metadata(cluster, 3, "orders"))[1] == 2
    cluster.create("later")
    assert metadata(cluster, 3, "later", create=False).topics[0].error_code == UNKNOWN


@pytest.mark.parametrize("persona", PERSONAS)
def test_all_topics_are_asked_for_in_two_ways(persona: str) -> None:
    """In version 0 by naming none, later by null; an empty list then means none."""
    cluster = Cluster(persona=persona)
    cluster.create("a")
    cluster.create("b")
    assert [it.name for it in metadata(cluster, 1, everything=True, version=0).topics] == ["a", "b"]
    if persona != "0.9":
        assert [it.name for it in metadata(cluster, 1, everything=True, version=1).topics] == ["a", "b"]
        assert metadata(cluster, 1, version=1).topics == []


@pytest.mark.parametrize(("persona", "code"), [("0.9", 5), ("2.8", 5), ("3.9", 5), ("4.3", 3)])
def test_topic_that_is_asked_for_is_created(persona: str, code: int) -> None:
    """With ZooKeeper every broker creates it itself and says 5; with KRaft, 3. The next request finds it."""
    cluster = Cluster(persona=persona)
    for node, name in ((1, "one"), (2, "two")):
        answer = metadata(cluster, node, name, version=0)
        assert (answer.topics[0].error_code, answer.topics[0].partitions) == (code, [])
        assert metadata(cluster, node, name, version=0).topics[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("persona", LATER)
def test_request_may_forbid_creation_since_version_4(persona: str) -> None:
    """Consumers with allow.auto.create.topics=false; older requests cannot say so."""
    cluster = Cluster(persona=persona)
    assert metadata(cluster, 1, "orders", version=4, create=False).topics[0].error_code == UNKNOWN
    assert metadata(cluster, 1, "orders", version=4, create=False).topics[0].error_code == UNKNOWN
    metadata(cluster, 1, "orders", version=3)
    assert metadata(cluster, 1, "orders", version=4, create=False).topics[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("persona", PERSONAS)
def test_broker_may_forbid_creation(persona: str) -> None:
    """auto.create.topics.enable=false; only 0.9 creates the offsets topic all the same."""
    cluster = Cluster(persona=persona, settings={"auto.create.topics.enable": "false"})
    for name in ("orders", OFFSETS_TOPIC):
        for _ in range(2):
            found = metadata(cluster, 1, name, version=0).topics[0].error_code
        assert found == (0 if (persona, name) == ("0.9", OFFSETS_TOPIC) else UNKNOWN)


@pytest.mark.parametrize(("persona", "code"), [("2.8", 38), ("3.9", 38), ("4.3", 3)])
def test_too_few_brokers_for_the_default_replication(persona: str, code: int) -> None:
    """A broker that creates by itself knows why it could not; Kafka 4 does not wait to learn it."""
    cluster = Cluster(2, persona, {"default.replication.factor": "3"})
    for _ in range(2):
        assert metadata(cluster, 1, "orders", version=0).topics[0].error_code == code
        assert metadata(cluster, 1, OFFSETS_TOPIC, version=0).topics[0].error_code == code


def test_kafka_0_9_trips_over_a_topic_for_which_there_are_too_few_brokers() -> None:
    """Nothing in the answer is told, not even the brokers. The offsets topic takes what there is."""
    cluster = Cluster(2, "0.9", {"default.replication.factor": "3"})
    cluster.create("there", replication=2)
    for names in (["orders"], ["there", "orders"], ["a b"]):
        answer = metadata(cluster, 1, *names, version=0)
        assert answer.brokers == []
        assert [(it.name, it.error_code, it.partitions) for it in answer.topics] == [
            (name, ErrorCode.UNKNOWN_SERVER_ERROR, []) for name in names
        ]
    for names in (["there"], ["there", OFFSETS_TOPIC], []):
        answer = metadata(cluster, 1, *names, version=0)
        assert len(answer.brokers) == 2
        assert ErrorCode.UNKNOWN_SERVER_ERROR not in [it.error_code for it in answer.topics]


@pytest.mark.parametrize("persona", PERSONAS)
@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250])
def test_invalid_names_are_not_created(persona: str, name: str) -> None:
    """INVALID_TOPIC_EXCEPTION, whether or not the topic could be created."""
    cluster = Cluster(persona=persona)
    assert metadata(cluster, 1, name, version=0).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert name not in cluster.fabric.controller.image.topics
    if persona != "0.9":
        found = metadata(cluster, 1, name, version=4, create=False)
        assert found.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_topics_go_by_id_too() -> None:
    """Version 12: known ids get their names back, unknown ones UNKNOWN_TOPIC_ID."""
    cluster = Cluster()
    cluster.create()
    known = cluster.topic_id("orders")
    answer = metadata(cluster, 1, version=12, ids=(known, b"\7" * 16))
    assert [(it.error_code, it.name, it.topic_id) for it in answer.topics] == [
        (0, "orders", known),
        (ErrorCode.UNKNOWN_TOPIC_ID, None, b"\7" * 16),
    ]
    assert metadata(cluster, 1, "orders", version=9).topics[0].topic_id == NO_UUID


@pytest.mark.parametrize("persona", LATER)
@pytest.mark.parametrize(("version", "code"), [(0, 5), (5, 5), (6, 72), (11, 72)])
def test_leader_without_the_clients_listener(persona: str, version: int, code: int) -> None:
    """The broker lives, but this client cannot reach it: LISTENER_NOT_FOUND, known since version 6."""
    listeners = {node: frozenset({"PLAINTEXT", "OUTSIDE"}) for node in (2, 3)}
    cluster = Cluster(persona=persona, listeners=listeners)
    cluster.create()
    answer = metadata(cluster, 2, "orders", version=version, listener="OUTSIDE")
    assert first(answer)[:2] == (code, -1)
    assert [it.node_id for it in answer.brokers] == [2, 3]
    assert first(metadata(cluster, 2, "orders", version=version))[:2] == (0, 1)


def test_kafka_0_9_answers_nothing_where_one_replica_lacks_the_listener() -> None:
    """Its endpoints were looked up outside the try block: one living replica spoils the whole request."""
    cluster = Cluster(persona="0.9", listeners={2: frozenset({"PLAINTEXT", "OUTSIDE"})})
    cluster.create("orders", assignment={0: [2, 3]})
    cluster.create("payments", assignment={0: [2]})
    spoilt = metadata(cluster, 2, "orders", "payments", version=0, listener="OUTSIDE")
    assert spoilt.brokers == []
    assert [it.error_code for it in spoilt.topics] == [-1, -1]
    fine = metadata(cluster, 2, "payments", version=0, listener="OUTSIDE")
    assert first(fine) == (0, 2, [2], [2])
