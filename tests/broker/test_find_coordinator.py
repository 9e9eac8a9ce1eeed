"""FindCoordinator: key, partition, metadata of the internal topic, leader; COORDINATOR_NOT_AVAILABLE else."""

import pytest

from kelpie.broker.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from tests.broker.clients import find
from tests.broker.driver import PERSONAS, Cluster

NOWHERE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
VERSIONS = [
    pytest.param(persona, version, id=f"{persona}-v{version}")
    for persona in PERSONAS
    for version in range(Cluster(1, persona).latest(10) + 1)
]


@pytest.mark.parametrize(("persona", "version"), VERSIONS)
def test_first_call_creates_the_topic_and_the_next_finds_the_leader(persona: str, version: int) -> None:
    """The broker that is asked first has nothing to name yet, so it says 15 once."""
    cluster = Cluster(persona=persona)
    assert find(cluster, 1, "billing", version=version) == NOWHERE
    topic = cluster.fabric.controller.image.topics[OFFSETS_TOPIC]
    assert [len(it.replicas) for it in topic.partitions] == [3] * 4
    leader = topic.partitions[partition_for("billing", 4)].leader
    for node in (1, 2, 3):
        assert find(cluster, node, "billing", version=version) == (0, leader, f"host{leader}", 9090 + leader)


@pytest.mark.parametrize(("persona", "version"), VERSIONS)
def test_leaderless_partition_has_no_coordinator(persona: str, version: int) -> None:
    """Two of three brokers dead: groups on hit partitions hear 15, the others go on."""
    cluster = Cluster(persona=persona, settings={"unclean.leader.election.enable": "false"})
    find(cluster, 1, "any")
    hit = partition_for("billing", 4)
    healthy = next(name for name in map(str, range(99)) if partition_for(name, 4) != hit)
    cluster.fabric.make_leaderless(TopicPartition(OFFSETS_TOPIC, hit), cluster.now)
    for node in (1, 2, 3):
        assert find(cluster, node, "billing", version=version) == NOWHERE
        assert find(cluster, node, healthy, version=version)[0] == ErrorCode.NONE


@pytest.mark.parametrize("persona", PERSONAS)
def test_coordinator_whose_replica_is_down_is_still_found(persona: str) -> None:
    """A dead replica is an error of the partition in Metadata v0, but the leader is there."""
    cluster = Cluster(persona=persona)
    find(cluster, 1, "billing")
    _, leader, _, _ = find(cluster, 1, "billing")
    other = next(node for node in (1, 2, 3) if node != leader)
    cluster.lose(other)
    assert find(cluster, leader, "billing")[:2] == (0, leader)


@pytest.mark.parametrize("persona", PERSONAS)
def test_dead_coordinator_is_named_until_the_controller_notices(persona: str) -> None:
    """Before the session ends, FindCoordinator names the dead broker; after it, the next leader."""
    cluster = Cluster(persona=persona)
    find(cluster, 1, "billing")
    _, leader, _, _ = find(cluster, 1, "billing")
    asked = next(node for node in (1, 2, 3) if node != leader)
    cluster.fabric.kill(leader, cluster.now)
    assert find(cluster, asked, "billing")[:2] == (0, leader)
    cluster.advance(500)
    code, now, _, _ = find(cluster, asked, "billing")
    assert code == ErrorCode.NONE
    assert now != leader


@pytest.mark.parametrize("persona", PERSONAS)
def test_too_few_brokers_for_the_offsets_topic(persona: str) -> None:
    """0.9 creates it with the replicas that it can have; later releases create nothing."""
    cluster = Cluster(3, persona)
    cluster.lose(3)
    answers = [find(cluster, 1, "billing")[0] for _ in range(3)]
    topic = cluster.fabric.controller.image.topics.get(OFFSETS_TOPIC)
    if persona == "0.9":
        assert answers == [15, 0, 0]
        assert topic is not None
        assert {len(it.replicas) for it in topic.partitions} == {2}
    else:
        assert answers == [15, 15, 15]
        assert topic is None
        cluster.start(3)
        assert [find(cluster, 1, "billing")[0] for _ in range(2)] == [15, 0]


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_transaction_coordinators_have_their_own_topic(persona: str) -> None:
    """Key type 1 looks in __transaction_state, with its own number of partitions."""
    cluster = Cluster(persona=persona, settings={"transaction.state.log.num.partitions": "7"})
    assert find(cluster, 1, "tx", kind=1) == NOWHERE
    topic = cluster.fabric.controller.image.topics[TRANSACTIONS_TOPIC]
    assert OFFSETS_TOPIC not in cluster.fabric.controller.image.topics
    assert find(cluster, 1, "tx", kind=1)[1] == topic.partitions[partition_for("tx", 7)].leader


@pytest.mark.parametrize(("persona", "version"), [it for it in VERSIONS if it.values[1] != 0])
def test_unknown_key_type_is_an_invalid_request(persona: str, version: int) -> None:
    """42, and nothing is created for it. Share groups (2) are not served."""
    cluster = Cluster(persona=persona)
    for kind in (2, 9):
        assert find(cluster, 1, "billing", version=version, kind=kind) == (42, -1, "", -1)
    assert not cluster.fabric.controller.image.topics


@pytest.mark.parametrize("persona", ["3.9", "4.3"])
def test_many_keys_have_one_answer_each(persona: str) -> None:
    """Version 4: each key has its own error, and a broken one spoils no other."""
    cluster = Cluster(persona=persona)
    find(cluster, 1, "any")
    names = [f"group-{index}" for index in range(8)]
    hit = TopicPartition(OFFSETS_TOPIC, partition_for(names[0], 4))
    cluster.fabric.make_leaderless(hit, cluster.now)
    for name, found in zip(names, find(cluster, 2, *names), strict=True):
        partition = partition_for(name, 4)
        if partition == hit.partition:
            assert found == NOWHERE
        else:
            assert found[:2] == (0, cluster.leader(TopicPartition(OFFSETS_TOPIC, partition)))


def test_message_beside_the_code_follows_the_version() -> None:
    """Versions 1 to 3 explain the code; from 4 on Kafka leaves the message empty."""
    cluster = Cluster()
    one = cluster.ask(1, FindCoordinatorRequest(key="billing"), 3)
    assert (one.error_code, one.error_message) == (15, "The coordinator is not available.")
    many = cluster.ask(1, FindCoordinatorRequest(coordinator_keys=["billing"]), 4)
    assert many.coordinators[0].error_message == ""
    assert cluster.ask(1, FindCoordinatorRequest(key="billing"), 3).error_message == "NONE"


@pytest.mark.parametrize("persona", PERSONAS)
def test_coordinator_without_the_clients_listener_is_not_available(persona: str) -> None:
    """The leader lives, but not where the client could reach it."""
    cluster = Cluster(persona=persona, listeners={2: frozenset({"PLAINTEXT", "OUTSIDE"})})
    find(cluster, 1, "billing")
    _, leader, _, _ = find(cluster, 1, "billing")
    if leader == 2:
        cluster.lose(2)
        cluster.start(2)
    assert find(cluster, 2, "billing", listener="OUTSIDE") == NOWHERE


@pytest.mark.parametrize("persona", PERSONAS)
def test_frozen_broker_names_the_former_coordinator(persona: str) -> None:
    """It looks at its own image; whoever asks another broker hears the truth."""
    cluster = Cluster(persona=persona)
    find(cluster, 1, "billing")
    _, leader, _, _ = find(cluster, 1, "billing")
    stale, fresh = (node for node in (1, 2, 3) if node != leader)
    cluster.fabric.freeze_metadata(stale)
    cluster.lose(leader)
    assert find(cluster, stale, "billing")[:2] == (0, leader)
    assert find(cluster, fresh, "billing")[1] in (stale, fresh)
