"""What is committed, what is lost, and who is in sync: the brokers' side of a partition's life."""

import pytest

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from tests.broker.clients import ALL, LEADER, batch, fetch, part, produce, produced, read, send_produce
from tests.broker.driver import PARKED, PERSONAS, Cluster


def contents(cluster: Cluster, node: int, partition: TopicPartition) -> list[bytes | None]:
    log = cluster.replica(node, partition).log
    return [record.value for stored in log.batches_from(log.start_offset) for record in stored.records()]


def strict(persona: str) -> Cluster:
    return Cluster(persona=persona, settings={"unclean.leader.election.enable": "false"})


@pytest.mark.parametrize("persona", PERSONAS)
def test_followers_have_what_the_leader_has(persona: str) -> None:
    """At rest all replicas are the same, and all know what is committed."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    produced(cluster, partition, b"a", b"b")
    for node in (1, 2, 3):
        assert contents(cluster, node, partition) == [b"a", b"b"]
        assert cluster.replica(node, partition).high_watermark == 2


@pytest.mark.parametrize("persona", PERSONAS)
def test_unreplicated_records_of_a_killed_leader_are_lost(persona: str) -> None:
    """acks=1 promises no more than that: whoever leads next never had them, and the old leader drops them."""
    cluster = strict(persona)
    partition = cluster.create()
    produced(cluster, partition, b"kept")
    cluster.fabric.lag(2)
    cluster.fabric.lag(3)
    assert produced(cluster, partition, b"lost", acks=LEADER) == 1
    cluster.lose(1)
    for node in (2, 3):
        cluster.fabric.catch_up(node, None, cluster.now)
    assert produced(cluster, partition, b"new", b"newer") == 1
    cluster.start(1)
    for node in (1, 2, 3):
        assert contents(cluster, node, partition) == [b"kept", b"new", b"newer"]


@pytest.mark.parametrize("persona", PERSONAS)
def test_acknowledged_by_all_survives_every_clean_election(persona: str) -> None:
    """acks=all waits for the whole ISR, so each next leader has it."""
    cluster = strict(persona)
    partition = cluster.create()
    produced(cluster, partition, b"a")
    for node in (1, 2):
        cluster.lose(node)
        assert read(cluster, partition) == [b"a"]
    cluster.start(1)
    cluster.lose(3)
    assert cluster.leader(partition) == 1
    assert read(cluster, partition) == [b"a"]


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_unclean_election_loses_what_the_new_leader_lacks(persona: str) -> None:
    """Records that were committed are gone, and all replicas agree that they are."""
    cluster = strict(persona)
    partition = cluster.create()
    produced(cluster, partition, b"a")
    cluster.fabric.shrink_isr(partition, [1, 2], cluster.now)
    produced(cluster, partition, b"b", b"c")
    cluster.lose(1, 2)
    cluster.fabric.elect(partition, cluster.now, unclean=True)
    assert cluster.leader(partition) == 3
    assert produced(cluster, partition, b"other") == 1
    cluster.start(1)
    cluster.start(2)
    cluster.fabric.catch_up(3, partition, cluster.now)
    for node in (1, 2, 3):
        assert contents(cluster, node, partition) == [b"a", b"other"]
    assert cluster.state(partition).isr == (3, 1, 2)


def test_logs_of_kafka_0_9_may_differ_after_an_unclean_election() -> None:
    """Without epochs (KIP-101) a follower keeps what it believes committed, up to the new leader's end."""
    cluster = strict("0.9")
    partition = cluster.create()
    produced(cluster, partition, b"a")
    cluster.fabric.shrink_isr(partition, [1, 2], cluster.now)
    produced(cluster, partition, b"b", b"c")
    cluster.lose(1, 2)
    cluster.fabric.elect(partition, cluster.now, unclean=True)
    produced(cluster, partition, b"other")
    cluster.start(1)
    cluster.start(2)
    assert [contents(cluster, node, partition) for node in (1, 2, 3)] == [
        [b"a", b"b"],
        [b"a", b"b"],
        [b"a", b"other"],
    ]


@pytest.mark.parametrize("persona", PERSONAS)
def test_too_few_in_sync_refuse_acks_all(persona: str) -> None:
    """min.insync.replicas is a matter of acks=all alone."""
    cluster = Cluster(persona=persona)
    partition = cluster.create(config={"min.insync.replicas": "2"})
    cluster.lose(2, 3)
    assert produce(cluster, partition, b"a").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert produced(cluster, partition, b"b", acks=LEADER) == 0
    cluster.start(2)
    assert produced(cluster, partition, b"c") == 1


@pytest.mark.parametrize(
    ("persona", "visible"), [("0.9", True), ("2.8", True), ("3.9", False), ("4.3", False)]
)
def test_nothing_is_committed_below_the_least_isr(persona: str, visible: bool) -> None:
    """Since 3.7 the high watermark waits for min.insync.replicas, also for what came with acks=1."""
    cluster = Cluster(persona=persona)
    partition = cluster.create(config={"min.insync.replicas": "2"})
    cluster.lose(2, 3)
    produced(cluster, partition, b"a", acks=LEADER)
    assert read(cluster, partition) == ([b"a"] if visible else [])
    cluster.start(2)
    assert read(cluster, partition) == [b"a"]


@pytest.mark.parametrize("persona", ["2.8", "3.9"])
def test_isr_that_shrinks_behind_an_append(persona: str) -> None:
    """2.8 commits it, and says that too few have it (20); since 3.7 it is not committed, and times out."""
    cluster = Cluster(persona=persona)
    partition = cluster.create(config={"min.insync.replicas": "2"}, assignment={0: [1, 2]})
    cluster.fabric.lag(2)
    sent = send_produce(cluster, partition, b"a", timeout_ms=5000)
    cluster.fabric.stop(2, cluster.now)
    if persona == "2.8":
        assert part(sent.answer).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    else:
        assert sent.waits
        cluster.advance(5000)
        assert part(sent.answer).error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("persona", "code"), [("2.8", ErrorCode.NOT_ENOUGH_REPLICAS), ("4.3", ErrorCode.NONE)]
)
def test_topic_that_never_had_so_many_replicas(persona: str, code: ErrorCode) -> None:
    """One replica, min.insync.replicas=2: 2.8 never accepts acks=all, since 3.7 one is enough."""
    cluster = Cluster(persona=persona)
    partition = cluster.create(replication=1, config={"min.insync.replicas": "2"})
    assert produce(cluster, partition, b"a").error_code == code


@pytest.mark.parametrize("persona", PERSONAS)
def test_lagging_follower_holds_acks_all_until_it_leaves_the_isr(persona: str) -> None:
    """It has replica.lag.time.max.ms to catch up; then the others go on without it."""
    cluster = Cluster(persona=persona, settings={"replica.lag.time.max.ms": "10000"})
    partition = cluster.create()
    cluster.advance(60_000)
    cluster.fabric.lag(3)
    sent = send_produce(cluster, partition, b"a", timeout_ms=60_000)
    cluster.advance(9_999)
    assert sent.waits
    assert cluster.state(partition).isr == (1, 2, 3)
    assert read(cluster, partition) == []
    cluster.advance(11_000)
    assert part(sent.answer).error_code == ErrorCode.NONE
    assert cluster.state(partition).isr == (1, 2)
    cluster.fabric.catch_up(3, None, cluster.now)
    assert cluster.state(partition).isr == (1, 2, 3)


def test_follower_of_a_silent_partition_keeps_its_place() -> None:
    """Who has everything is in sync, however long nothing came."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.lag(3)
    cluster.advance(300_000)
    assert cluster.state(partition).isr == (1, 2, 3)


def test_shrunken_isr_stays_shrunken_while_nothing_is_written() -> None:
    """Only a follower that fetches joins the ISR, not one that happens to have it all."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.shrink_isr(partition, [1], cluster.now)
    cluster.advance(300_000)
    assert cluster.state(partition).isr == (1,)
    cluster.fabric.catch_up(2, partition, cluster.now)
    assert cluster.state(partition).isr == (1, 2)


def test_isr_without_its_leader_gets_another() -> None:
    """The fault may name whom it likes: a leader that falls behind does not lead."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.shrink_isr(partition, [3], cluster.now)
    state = cluster.state(partition)
    assert (state.leader, state.isr) == (3, (3,))


@pytest.mark.parametrize("persona", PERSONAS)
def test_isolated_leader(persona: str) -> None:
    """It believes that it leads: acks=all times out, acks=1 is taken, and is lost when it comes back."""
    cluster = strict(persona)
    partition = cluster.create()
    produced(cluster, partition, b"a")
    cluster.fabric.isolate(1, cluster.now)
    sent = send_produce(cluster, partition, b"all", node=1, timeout_ms=5000)
    assert produced(cluster, partition, b"one", node=1, acks=LEADER) == 2
    cluster.advance(5000)
    assert part(sent.answer).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert cluster.leader(partition) == 2
    assert read(cluster, partition, node=1) == [b"a"]
    assert produced(cluster, partition, b"b") == 1
    cluster.fabric.rejoin(1, cluster.now)
    assert contents(cluster, 1, partition) == [b"a", b"b"]
    assert cluster.state(partition).isr == (2, 3, 1)


def test_whoever_waits_hears_when_the_lead_moves() -> None:
    """A parked acks=all produce ends with NOT_LEADER_OR_FOLLOWER, and names the new leader to nobody else."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.lag(3)
    sent = send_produce(cluster, partition, b"a", node=1)
    assert sent.waits
    cluster.fabric.stop(1, cluster.now)
    assert part(sent.answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_wrong_broker_names_the_leader() -> None:
    """Produce v10 (KIP-951) tells where to go, with the address; older versions only that it is elsewhere."""
    cluster = Cluster()
    partition = cluster.create()
    old = produce(cluster, partition, b"a", node=2, version=9)
    assert (old.error_code, old.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    answer = send_produce(cluster, partition, b"a", node=2, version=10).answer
    told = part(answer).current_leader
    assert (told.leader_id, told.leader_epoch) == (1, 0)
    assert [(it.node_id, it.host, it.port) for it in answer.node_endpoints] == [(1, "host1", 9091)]


@pytest.mark.parametrize(("persona", "code"), [("0.9", 3), ("2.8", 6), ("4.3", 6)])
def test_partition_that_another_broker_holds(persona: str, code: int) -> None:
    """0.9 does not know partitions that it does not hold; later releases look at their metadata."""
    cluster = Cluster(persona=persona)
    partition = cluster.create(replication=1)
    assert produce(cluster, partition, b"a", node=2).error_code == code
    assert fetch(cluster, partition, node=2).error_code == code


@pytest.mark.parametrize("persona", PERSONAS)
def test_acks_0_has_no_answer_and_a_failure_closes(persona: str) -> None:
    """All that a broker can say to someone who does not listen is to hang up."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    assert send_produce(cluster, partition, b"a", acks=0).answer is None
    assert send_produce(cluster, partition, b"a", acks=0, node=2).refused


@pytest.mark.parametrize("persona", PERSONAS)
def test_requests_that_cannot_be(persona: str) -> None:
    """Acks that do not exist, topics that do not exist, topics that are not for clients."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    assert produce(cluster, partition, b"a", acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    missing = TopicPartition("orders", 7)
    assert produce(cluster, missing, b"a", node=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    internal = cluster.create("__consumer_offsets")
    assert produce(cluster, internal, b"a").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_admin_client_may_write_to_internal_topics() -> None:
    """Kafka knows it by its client id."""
    cluster = Cluster()
    internal = cluster.create("__consumer_offsets")
    assert produced(cluster, internal, records=batch(b"a"), client_id="__admin_client", acks=ALL) == 0


def test_topic_created_anew_has_nothing_of_the_old_one() -> None:
    """A broker that slept through the deletion must not bring back the old records under the same name."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"old", b"older", b"oldest")
    cluster.lose(3)
    cluster.fabric.controller.delete_topic("orders")
    cluster.fabric.publish(cluster.now)
    cluster.create()
    produced(cluster, partition, b"new")
    cluster.start(3)
    assert contents(cluster, 3, partition) == [b"new"]


def test_waiting_produce_ends_with_the_topic() -> None:
    """A deleted topic has no followers that could catch up."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.lag(3)
    sent = send_produce(cluster, partition, b"a")
    cluster.fabric.controller.delete_topic("orders")
    cluster.fabric.publish(cluster.now)
    assert part(sent.answer).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_thousand_partitions_come_back_at_once() -> None:
    """One image tells all of it: no recursion, and no image per partition."""
    cluster = Cluster()
    cluster.create(partitions=1000)
    cluster.lose(3)
    before = cluster.fabric.broker(1).image.version
    cluster.start(3)
    topic = cluster.fabric.broker(1).image.topics["orders"]
    assert all(len(state.isr) == 3 for state in topic.partitions)
    assert before < cluster.fabric.broker(1).image.version


def test_frozen_leader_waits_for_whom_it_believes_in_sync() -> None:
    """Its ISR is that of its image; a dead follower in it holds every acks=all request."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.freeze_metadata(1)
    cluster.lose(3)
    assert produce(cluster, partition, b"a", timeout_ms=1000) is PARKED
