"""A coordinator's life on its broker: loading, failing over, resigning, and what its groups notice."""

from typing import Any

import pytest

from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.list_groups import ListGroupsRequest
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.clients import commit, committed, coordinator, find, heartbeat, join, part, send_commit
from tests.broker.driver import PERSONAS, Cluster

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
GROUP = "billing"
PLACE = TopicPartition(OFFSETS_TOPIC, partition_for(GROUP, 4))


def with_offset(persona: str = "4.3", **settings: str) -> tuple[Cluster, TopicPartition, int]:
    """A cluster, a topic, and the coordinator of a group that has committed 5."""
    given = {"unclean.leader.election.enable": "false", **settings}
    cluster = Cluster(persona=persona, settings=given)
    partition = cluster.create()
    node = coordinator(cluster, GROUP)
    assert commit(cluster, GROUP, partition, 5, node=node) == ErrorCode.NONE
    return cluster, partition, node


def member_of(cluster: Cluster, node: int) -> tuple[str, int]:
    """One member in a stable group: its id and generation."""
    sent = join(cluster, node, GROUP)
    cluster.advance(3000)
    joined = sent.answer
    assert joined.error_code == ErrorCode.NONE
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")
    answer = sync(cluster, node, joined.member_id, joined.generation_id, [assignment])
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"mine")
    return joined.member_id, joined.generation_id


def sync(
    cluster: Cluster, node: int, member: str, generation: int, assignments: list[Any] | None = None
) -> Any:
    request = SyncGroupRequest(
        group_id=GROUP, generation_id=generation, member_id=member, assignments=assignments or []
    )
    return cluster.ask(node, request, 0)


def moved(cluster: Cluster, node: int) -> int:
    """The coordinator after that one was killed."""
    cluster.lose(node)
    return cluster.leader(PLACE)


@pytest.mark.parametrize("persona", PERSONAS)
def test_group_and_offsets_survive_a_failover(persona: str) -> None:
    """The next leader replays the log: same member, same generation, same offsets."""
    cluster, partition, node = with_offset(persona)
    member, generation = member_of(cluster, node)
    assert commit(cluster, GROUP, partition, 7, node=node, generation=generation, member=member) == 0
    after = moved(cluster, node)
    assert committed(cluster, GROUP, partition, node=after) == 7
    assert heartbeat(cluster, after, GROUP, generation, member) == ErrorCode.NONE
    assert sync(cluster, after, member, generation).assignment == b"mine"


@pytest.mark.parametrize("persona", PERSONAS)
def test_other_brokers_are_not_the_coordinator(persona: str) -> None:
    """NOT_COORDINATOR (16), for joins, heartbeats, commits and fetches alike."""
    cluster, partition, node = with_offset(persona)
    other = next(it for it in (1, 2, 3) if it != node)
    wrong = ErrorCode.NOT_COORDINATOR
    assert commit(cluster, GROUP, partition, 6, node=other) == wrong
    assert committed(cluster, GROUP, partition, node=other) == wrong
    assert join(cluster, other, GROUP).answer.error_code == wrong
    assert heartbeat(cluster, other, GROUP, 1, "m") == wrong
    assert sync(cluster, other, "m", 1).error_code == wrong


@pytest.mark.parametrize(
    ("persona", "usual", "syncing", "beating"),
    [
        ("0.9", 16, 16, 16),
        ("2.8", 14, 27, 0),
        ("3.9", 14, 27, 0),
        ("4.3", 14, 14, 0),
    ],
)
def test_slow_load(persona: str, usual: int, syncing: int, beating: int) -> None:
    """14 while the log is replayed, save where a release has its own mind: 0.9 says 16, Sync 27 up to 3.x."""
    cluster, partition, node = with_offset(persona)
    member, generation = member_of(cluster, node)
    cluster.fabric.slow_load(5000)
    after = moved(cluster, node)
    assert commit(cluster, GROUP, partition, 6, node=after) == usual
    assert committed(cluster, GROUP, partition, node=after) == usual
    assert join(cluster, after, GROUP, member).answer.error_code == usual
    assert sync(cluster, after, member, generation).error_code == syncing
    assert heartbeat(cluster, after, GROUP, generation, member) == beating
    described = cluster.ask(after, DescribeGroupsRequest(groups=[GROUP]), 0).groups[0]
    assert described.error_code == usual
    cluster.advance(4999)
    assert committed(cluster, GROUP, partition, node=after) == usual
    cluster.advance(1)
    assert committed(cluster, GROUP, partition, node=after) == 5
    assert heartbeat(cluster, after, GROUP, generation, member) == ErrorCode.NONE


@pytest.mark.parametrize("persona", PERSONAS)
def test_groups_are_listed_while_others_load(persona: str) -> None:
    """ListGroups says 14; the coordinator of 4.x then lists nothing, the older one what it has."""
    cluster, _, node = with_offset(persona)
    member_of(cluster, node)
    cluster.fabric.slow_load(5000)
    for other in (1, 2, 3):
        if other != node:
            cluster.lose(other)
    answer = cluster.ask(node, ListGroupsRequest(), 0)
    assert answer.error_code == LOADING
    assert [it.group_id for it in answer.groups] == ([] if persona == "4.3" else [GROUP])
    cluster.advance(5000)
    answer = cluster.ask(node, ListGroupsRequest(), 0)
    assert (answer.error_code, [it.group_id for it in answer.groups]) == (ErrorCode.NONE, [GROUP])


def test_slow_load_outlives_a_restart() -> None:
    """The fault is the cluster's, not the process's."""
    cluster, partition, node = with_offset()
    cluster.fabric.slow_load(5000)
    for other in (1, 2, 3):
        if other != node:
            cluster.fabric.stop(other, cluster.now)
    cluster.fabric.kill(node, cluster.now)
    cluster.start(node)
    assert committed(cluster, GROUP, partition, node=node) == LOADING
    cluster.fabric.slow_load(0)
    cluster.advance(5000)
    assert committed(cluster, GROUP, partition, node=node) == 5


@pytest.mark.parametrize("persona", PERSONAS)
def test_resignation_answers_parked_joins(persona: str) -> None:
    """Whoever waits for the rebalance is sent to look for the new coordinator: 16."""
    cluster, _, node = with_offset(persona)
    member, generation = member_of(cluster, node)
    parked = join(cluster, node, GROUP)
    assert parked.waits
    cluster.fabric.stop(node, cluster.now)
    assert parked.answer.error_code == ErrorCode.NOT_COORDINATOR
    after = cluster.leader(PLACE)
    assert heartbeat(cluster, after, GROUP, generation, member) == ErrorCode.NONE


@pytest.mark.parametrize(("persona", "code"), [("2.8", 15), ("3.9", 15), ("4.3", 15)])
def test_too_few_replicas_of_the_offsets_topic(persona: str, code: int) -> None:
    """min.insync.replicas holds for commits as well, and clients hear COORDINATOR_NOT_AVAILABLE."""
    cluster, partition, node = with_offset(persona, **{"min.insync.replicas": "2"})
    for other in (1, 2, 3):
        if other != node:
            cluster.lose(other)
    assert commit(cluster, GROUP, partition, 6, node=node) == code
    assert committed(cluster, GROUP, partition, node=node) == 5
    cluster.start(next(it for it in (1, 2, 3) if it != node))
    assert commit(cluster, GROUP, partition, 6, node=node) == ErrorCode.NONE


@pytest.mark.parametrize(("persona", "code"), [("2.8", 7), ("3.9", 7), ("4.3", 15)])
def test_commit_that_followers_do_not_take_times_out(persona: str, code: int) -> None:
    """offsets.commit.timeout.ms is 5 s; the record may still be committed later, and then counts."""
    cluster, partition, node = with_offset(persona)
    for other in (1, 2, 3):
        cluster.fabric.lag(other)
    sent = send_commit(cluster, GROUP, partition, 8, node=node)
    cluster.advance(4999)
    assert sent.waits
    cluster.advance(1)
    assert part(sent.answer).error_code == code
    for other in (1, 2, 3):
        cluster.fabric.catch_up(other, None, cluster.now)
    assert committed(cluster, GROUP, partition, node=node) == 8


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_commit_is_lost_in_an_unclean_election(persona: str) -> None:
    """The new leader never had it: the group goes on from where it was before."""
    cluster, partition, node = with_offset(persona)
    others = [it for it in (1, 2, 3) if it != node]
    cluster.fabric.shrink_isr(PLACE, [node], cluster.now)
    assert commit(cluster, GROUP, partition, 9, node=node) == ErrorCode.NONE
    cluster.lose(node)
    assert find(cluster, others[0], GROUP)[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    cluster.fabric.elect(PLACE, cluster.now, unclean=True)
    after = cluster.leader(PLACE)
    assert after in others
    assert committed(cluster, GROUP, partition, node=after) == 5
    cluster.start(node)
    assert committed(cluster, GROUP, partition, node=after) == 5


@pytest.mark.parametrize("persona", PERSONAS)
def test_lost_offsets(persona: str) -> None:
    """The fault: tombstones for all of a group's offsets, and a failover does not bring them back."""
    cluster, partition, node = with_offset(persona)
    assert commit(cluster, "other", partition, 3, node=coordinator(cluster, "other")) == ErrorCode.NONE
    cluster.fabric.lose_offsets(GROUP, cluster.now)
    assert committed(cluster, GROUP, partition, node=node) in (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert committed(cluster, "other", partition, node=coordinator(cluster, "other")) == 3
    after = moved(cluster, node)
    assert committed(cluster, GROUP, partition, node=after) in (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("persona", PERSONAS)
def test_expired_offsets(persona: str) -> None:
    """The fault: time is up for one group, and not for the others."""
    cluster, partition, node = with_offset(persona)
    other = coordinator(cluster, "other")
    assert commit(cluster, "other", partition, 3, node=other) == ErrorCode.NONE
    cluster.fabric.expire_offsets(GROUP, cluster.now)
    assert committed(cluster, GROUP, partition, node=node) in (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert committed(cluster, "other", partition, node=other) == 3
    cluster.fabric.expire_offsets(None, cluster.now)
    assert committed(cluster, "other", partition, node=other) in (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_commit_under_way_is_answered_when_its_leader_begins_anew() -> None:
    """A replica is dropped: the same broker leads in a new epoch, loads anew, and nobody waits for ever."""
    cluster, partition, node = with_offset()
    other, last = (it for it in (1, 2, 3) if it != node)
    cluster.fabric.lag(other)
    sent = send_commit(cluster, GROUP, partition, 9, node=node)
    assert sent.waits
    cluster.fabric.controller.reassign(PLACE, [node, last])
    cluster.fabric.publish(cluster.now)
    assert cluster.leader(PLACE) == node
    assert part(sent.answer).error_code == ErrorCode.NOT_COORDINATOR
    assert committed(cluster, GROUP, partition, node=node) == 9


def test_offsets_of_deleted_topics_go() -> None:
    """Whoever creates the topic anew begins anew."""
    cluster, partition, node = with_offset()
    cluster.fabric.controller.delete_topic("orders")
    cluster.fabric.publish(cluster.now)
    cluster.create()
    assert committed(cluster, GROUP, partition, node=node) == -1


def test_isolated_coordinator_cannot_commit() -> None:
    """It believes that it leads; its writes reach nobody, and the true coordinator has what was committed."""
    cluster, partition, node = with_offset()
    cluster.fabric.isolate(node, cluster.now)
    sent = send_commit(cluster, GROUP, partition, 9, node=node)
    cluster.advance(6000)
    assert part(sent.answer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    after = cluster.leader(PLACE)
    assert after != node
    assert committed(cluster, GROUP, partition, node=after) == 5
    cluster.fabric.rejoin(node, cluster.now)
    assert committed(cluster, GROUP, partition, node=node) == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("persona", PERSONAS[:3])
def test_zookeeper_keeps_its_own_offsets(persona: str) -> None:
    """Version 0 of commit and fetch never meets the coordinator, and any broker serves it."""
    cluster, partition, node = with_offset(persona)
    other = next(it for it in (1, 2, 3) if it != node)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert committed(cluster, GROUP, partition, node=other, version=0) == missing
    assert commit(cluster, GROUP, partition, 77, node=other, version=0, note="kept nowhere") == 0
    assert committed(cluster, GROUP, partition, node=node, version=0) == 77
    assert committed(cluster, GROUP, partition, node=node) == 5
    assert commit(cluster, GROUP, TopicPartition("none", 0), 1, node=other, version=0) == missing
    too_long = commit(cluster, GROUP, partition, 1, node=other, version=0, note="x" * 4097)
    assert too_long == ErrorCode.OFFSET_METADATA_TOO_LARGE
    cluster.lose(node)
    assert committed(cluster, GROUP, partition, node=other, version=0) == 77


def test_describe_names_coordinators() -> None:
    """What people see of the cluster: brokers, partitions, and groups where they are."""
    cluster, _, node = with_offset()
    cluster.fabric.isolate(node, cluster.now)
    described = cluster.fabric.describe()
    groups: Any = described["groups"]
    assert [(it["group"], it["coordinator"], it["partition"]) for it in groups] == [
        (GROUP, node, PLACE.partition)
    ]
    brokers: Any = described["brokers"]
    assert [it["id"] for it in brokers if it["isolated"]] == [node]
