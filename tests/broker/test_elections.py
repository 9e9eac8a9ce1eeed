"""Who leads, after brokers went and came back: the controller's side."""

import pytest

from kelpie.broker.declined import Declined
from kelpie.broker.elections import Rules, elect, without
from kelpie.broker.image import NO_LEADER, PartitionImage
from kelpie.errors import ErrorCode
from kelpie.wire.api.elect_leaders import ElectLeadersRequest
from kelpie.wire.structs import TopicPartitions
from tests.broker.clients import LEADER, produced, read
from tests.broker.driver import PERSONAS, Cluster

STRICT = {"unclean.leader.election.enable": "false"}
"""Kafka 0.9 elects uncleanly unless it is told not to."""


@pytest.mark.parametrize("persona", PERSONAS)
def test_next_in_sync_replica_leads(persona: str) -> None:
    """A clean election takes the first living member of the ISR in the order of the replicas."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    cluster.lose(1)
    state = cluster.state(partition)
    assert (state.leader, state.leader_epoch, state.isr) == (2, 1, (2, 3))


@pytest.mark.parametrize("persona", PERSONAS)
def test_session_must_end_before_the_controller_notices(persona: str) -> None:
    """A kill is silent: until broker.session.timeout.ms is over, the dead broker leads."""
    cluster = Cluster(persona=persona, settings={"broker.session.timeout.ms": "9000"})
    partition = cluster.create()
    cluster.fabric.kill(1, cluster.now)
    cluster.advance(8999)
    assert cluster.leader(partition) == 1
    cluster.advance(1)
    assert cluster.leader(partition) == 2


@pytest.mark.parametrize("persona", PERSONAS)
def test_controlled_stop_moves_the_lead_first(persona: str) -> None:
    """A goodbye leaves no gap: the next leader is there when the broker goes, and nothing is lost."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    produced(cluster, partition, b"a", acks=LEADER)
    cluster.fabric.stop(1, cluster.now)
    assert cluster.leader(partition) == 2
    assert read(cluster, partition) == [b"a"]


@pytest.mark.parametrize("persona", ["0.9", "2.8", "3.9"])
def test_last_member_stays_in_the_isr(persona: str) -> None:
    """Before KIP-966 the ISR is never empty: it names whom everybody waits for."""
    cluster = Cluster(persona=persona, settings=STRICT)
    partition = cluster.create(assignment={0: [2, 3]})
    cluster.lose(2, 3)
    state = cluster.state(partition)
    assert (state.leader, state.isr, state.elr) == (NO_LEADER, (3,), ())
    cluster.start(2)
    assert cluster.leader(partition) == NO_LEADER
    cluster.start(3)
    assert (cluster.leader(partition), cluster.state(partition).isr) == (3, (3, 2))


def test_kafka_4_remembers_whom_it_waits_for() -> None:
    """As recorded on 4.3.1: the ISR is empty; the last to go is eligible, and known as the last leader."""
    cluster = Cluster()
    partition = cluster.create(assignment={0: [2, 3]})
    cluster.lose(3, 2)
    state = cluster.state(partition)
    assert (state.leader, state.isr, state.elr, state.last_leader) == (NO_LEADER, (), (2,), (2,))
    cluster.start(3)
    assert cluster.leader(partition) == NO_LEADER
    cluster.start(2)
    state = cluster.state(partition)
    assert (state.leader, state.isr, state.elr, state.last_leader) == (2, (2, 3), (), ())


def test_members_below_the_least_isr_stay_eligible() -> None:
    """With min.insync.replicas=2 one replica commits nothing, so whoever left as second has it all."""
    cluster = Cluster()
    partition = cluster.create(config={"min.insync.replicas": "2"})
    produced(cluster, partition, b"a")
    for node in (1, 2, 3):
        cluster.fabric.stop(node, cluster.now)
    assert cluster.state(partition).elr == (2, 3)
    cluster.start(2)
    assert cluster.leader(partition) == 2
    assert cluster.state(partition).elr == (3,)
    assert cluster.replica(2, partition).log.end_offset == 1


def test_crashed_broker_is_not_eligible() -> None:
    """Killed, not stopped: it may have lost what it had, so Kafka 4 waits for the last leader instead."""
    cluster = Cluster()
    partition = cluster.create(config={"min.insync.replicas": "2"})
    cluster.lose(1, 2, 3)
    assert cluster.state(partition).elr == (2, 3)
    cluster.start(2)
    assert cluster.leader(partition) == NO_LEADER
    assert cluster.state(partition).elr == (3,)
    cluster.start(3)
    assert cluster.leader(partition) == 3


@pytest.mark.parametrize("persona", PERSONAS)
def test_unclean_election_by_setting(persona: str) -> None:
    """With unclean.leader.election.enable the first living replica leads, and is the whole ISR."""
    cluster = Cluster(persona=persona, settings={"unclean.leader.election.enable": "true"})
    partition = cluster.create()
    cluster.fabric.lag(3)
    cluster.fabric.shrink_isr(partition, [1, 2], cluster.now)
    cluster.lose(1, 2)
    state = cluster.state(partition)
    assert (state.leader, state.isr, state.elr) == (3, (3,), ())


def test_kafka_0_9_elects_uncleanly_unless_told_not_to() -> None:
    """The default was true up to 0.10."""
    cluster = Cluster(persona="0.9")
    partition = cluster.create(assignment={0: [2, 3]})
    cluster.fabric.shrink_isr(partition, [2], cluster.now)
    cluster.lose(2)
    assert cluster.leader(partition) == 3


def elect_leaders(cluster: Cluster, kind: int, topic: str | None = "orders") -> dict[int, int]:
    asked = None if topic is None else [TopicPartitions(topic=topic, partitions=[0])]
    answer = cluster.ask(
        1, ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=1000), 2
    )
    assert answer.error_code == ErrorCode.NONE
    return {
        it.partition_id: it.error_code
        for topic in answer.replica_election_results
        for it in topic.partition_result
    }


def test_election_by_request() -> None:
    """ElectLeaders: the preferred leader, an unclean one, and what Kafka says where nothing is to do."""
    cluster = Cluster()
    partition = cluster.create(assignment={0: [2, 3]})
    assert elect_leaders(cluster, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}
    assert elect_leaders(cluster, 1) == {0: ErrorCode.ELECTION_NOT_NEEDED}
    assert elect_leaders(cluster, 0, topic=None) == {}
    assert elect_leaders(cluster, 0, topic="none") == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    cluster.lose(2)
    assert elect_leaders(cluster, 0) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    cluster.start(2)
    assert cluster.leader(partition) == 3
    assert elect_leaders(cluster, 0) == {0: ErrorCode.NONE}
    assert cluster.leader(partition) == 2
    cluster.fabric.shrink_isr(partition, [2], cluster.now)
    cluster.lose(2)
    assert cluster.leader(partition) == NO_LEADER
    assert elect_leaders(cluster, 1) == {0: ErrorCode.NONE}
    assert cluster.leader(partition) == 3
    cluster.lose(3)
    assert elect_leaders(cluster, 1) == {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_fault_leaderless_lasts_until_somebody_elects() -> None:
    """Brokers live, and yet nobody leads; the loss of another broker does not end the fault."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.make_leaderless(partition, cluster.now)
    cluster.lose(3)
    assert cluster.leader(partition) == NO_LEADER
    cluster.fabric.elect(partition, cluster.now, unclean=False)
    assert cluster.leader(partition) == 1
    with pytest.raises(Declined):
        cluster.fabric.elect(partition, cluster.now, unclean=False)


def test_clean_election_by_hand_needs_somebody_who_may() -> None:
    """Nobody in sync lives: the fault's end says so instead of doing nothing."""
    cluster = Cluster()
    partition = cluster.create(assignment={0: [2]})
    cluster.lose(2)
    with pytest.raises(Declined, match="without a loss"):
        cluster.fabric.elect(partition, cluster.now, unclean=False)


def test_controller_moves_when_its_broker_dies() -> None:
    """Clients that ask for the controller get one that lives."""
    cluster = Cluster()
    assert cluster.fabric.controller.image.controller_id == 1
    cluster.lose(1)
    assert cluster.fabric.broker(2).image.controller_id == 2


def test_fast_restart_is_a_new_session() -> None:
    """Back before the old session ended: the broker is lost and found, and does not lead again by itself."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.kill(1, cluster.now)
    cluster.advance(100)
    cluster.start(1)
    assert cluster.leader(partition) == 2
    cluster.advance(1000)
    state = cluster.state(partition)
    assert (state.leader, state.isr) == (2, (2, 3, 1))


def test_isolated_broker_that_restarts_leads_nothing() -> None:
    """It finds no controller after its start; once it does, it comes back as any other."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.isolate(1, cluster.now)
    cluster.fabric.kill(1, cluster.now)
    cluster.start(1)
    cluster.advance(1000)
    assert cluster.leader(partition) == 2
    assert not cluster.replica(1, partition).leads
    cluster.fabric.rejoin(1, cluster.now)
    assert cluster.state(partition).isr == (2, 3, 1)


def test_losing_a_broker_that_holds_nothing_changes_nothing() -> None:
    """The epochs of a partition are its own."""
    state = PartitionImage((1, 2), (1, 2), 1)
    assert without(state, 3, Rules({1, 2})) is state
    assert elect(state, Rules({1, 2})) is state
