"""Offsets: who may commit them, what is kept, and what becomes of them when a group goes."""

from kelpie.wire.api.delete_groups import DeleteGroupsRequest
from kelpie.wire.api.list_groups import ListGroupsRequest
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
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.lab.personas import personas
from tests.lab.personas.cluster import TOPIC, Cluster
from tests.lab.personas.member import Member, assemble


@personas()
def test_offsets_outlive_the_members(cluster: Cluster) -> None:
    """Who comes back begins where the group stopped, though in 0.9 the group itself was forgotten."""
    one = Member(cluster)
    assemble(one)
    assert one.committed() == (-1, 0)
    assert one.commit(42, metadata="so far") == 0
    assert one.committed() == (42, 0)
    assert one.leave() == 0
    assert one.committed() == (42, 0)
    again = Member(cluster)
    assemble(again)
    assert again.committed() == (42, 0)


@personas()
def test_offsets_of_nobody(cluster: Cluster) -> None:
    """A consumer that chooses its partitions itself only commits; others may not speak for a live group."""
    one = Member(cluster)
    assert one.commit(7) == 0
    assert one.described().group_state == ("Dead" if cluster.is_first else "Empty")
    assert one.commit(8, metadata=None) == 0
    assert one.committed() == (8, 0)
    assemble(one)
    other = Member(cluster, "other")
    assert other.commit(9) == 25
    assert other.committed() == (8, 0)


@personas()
def test_a_commit_names_what_it_could_not_store(cluster: Cluster) -> None:
    """Each partition has its own answer."""
    one = Member(cluster)
    assert one.commit(1, metadata="x" * 4096) == 0
    assert one.commit(2, metadata="x" * 4097) == 12
    assert one.commit(2, metadata="😀" * 2049) == 12, "UTF-16 code units count"
    assert one.commit(2, topic="unheard-of") == 3
    assert one.commit(2, partition=99) == (0 if cluster.is_first else 3), "0.9 looks for the topic only"
    mixed = [
        OffsetCommitRequestTopic(
            name=name,
            partitions=[
                OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=text),
                OffsetCommitRequestPartition(partition_index=99, committed_offset=5, committed_metadata=text),
            ],
        )
        for name, text in ((TOPIC, "m"), ("unheard-of", "m"))
    ]
    one.client.ask(OffsetCommitRequest(group_id=one.group, topics=mixed), one.versions["Commit"])
    assert one.committed() == (5, 0)
    assert one.committed(topic="unheard-of") == (-1, 0)
    assert one.committed(partition=99) == ((5 if cluster.is_first else -1), 0)
    one.client.ask(OffsetCommitRequest(group_id=one.group, topics=[]), one.versions["Commit"])


@personas()
def test_the_first_version_keeps_offsets_in_zookeeper(cluster: Cluster) -> None:
    """Consumers of 0.8 left their offsets there; the coordinator does not see them, nor they its."""
    one = Member(cluster)
    assert one.committed(version=0) == (-1, 3)
    assert one.commit(100, version=0) == 0
    assert one.committed(version=0) == (100, 0)
    assert one.committed(version=1) == (-1, 0)
    assert one.commit(200, version=1) == 0
    assert one.committed(version=0) == (100, 0)
    assert one.committed(version=1) == (200, 0)
    assert one.commit(1, version=0, topic="unheard-of") == 3
    assert one.committed(version=0, topic="unheard-of") == (-1, 3)


@personas()
def test_groups_are_listed(cluster: Cluster) -> None:
    """ListGroups knows groups with members; since 0.10.1 also those that only hold offsets."""
    one, lone = Member(cluster), Member(cluster, group=f"{cluster.group}-offsets")
    assemble(one)
    assert lone.commit(1) == 0
    listed = one.client.peek(ListGroupsRequest(), one.versions["List"])
    ours = {each.group_id: each for each in listed.groups if each.group_id.startswith(cluster.group)}
    assert sorted(ours) == ([one.group] if cluster.is_first else [one.group, lone.group])
    assert ours[one.group].protocol_type == "consumer"
    for name in sorted(ours):
        cluster.transcript.add("listed", ours[name])


@personas("2.8", "3.9")
def test_groups_are_listed_by_state(cluster: Cluster) -> None:
    """KIP-518. A state is named as people spell it."""
    one, lone = Member(cluster), Member(cluster, group=f"{cluster.group}-offsets")
    assemble(one)
    assert lone.commit(1) == 0
    for states in (["Stable"], ["Empty"], ["Stable", "Empty"], ["Dead"], ["stable"], ["no such state"]):
        answer = one.client.peek(ListGroupsRequest(states_filter=states), 4)
        ours = [each for each in answer.groups if each.group_id.startswith(cluster.group)]
        cluster.transcript.add(f"{states} {answer.error_code}", sorted(ours, key=lambda each: each.group_id))


@personas("2.8", "3.9")
def test_all_offsets_of_a_group_at_once(cluster: Cluster) -> None:
    """Null topics ask for everything; tools that reset offsets begin so."""
    one = Member(cluster)
    assert one.commit(31) == 0
    for version in range(2, 8):
        answer = one.client.ask(OffsetFetchRequest(group_id=one.group, topics=None), version)
        assert [topic.partitions[0].committed_offset for topic in answer.topics] == [31]
        absent = one.client.ask(OffsetFetchRequest(group_id="never-was", topics=None), version)
        assert (absent.topics, absent.error_code) == ([], 0)


@personas("3.9")
def test_offsets_of_several_groups_at_once(cluster: Cluster) -> None:
    """KIP-709: one request, and one answer each."""
    one, two = Member(cluster), Member(cluster, group=f"{cluster.group}-2")
    assert one.commit(1) == two.commit(2) == 0
    for version in (8, 9):
        groups = [
            OffsetFetchRequestGroup(group_id=group, topics=None) for group in (one.group, two.group, "none")
        ]
        answer = one.client.ask(OffsetFetchRequest(groups=groups), version)
        assert {group.group_id: group.error_code for group in answer.groups} == {
            one.group: 0,
            two.group: 0,
            "none": 0,
        }


@personas("2.8", "3.9")
def test_groups_and_offsets_can_be_deleted(cluster: Cluster) -> None:
    """KIP-229 and KIP-496: not while somebody uses them."""
    one = Member(cluster)
    assemble(one)
    assert one.commit(5) == 0

    def delete_offsets(topic: str, group: str = one.group) -> object:
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 99)]
        topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
        return one.client.ask(OffsetDeleteRequest(group_id=group, topics=topics), 0)

    def delete_group(*groups: str) -> list[int]:
        answer = one.client.ask(DeleteGroupsRequest(groups_names=list(groups)), 2)
        return [result.error_code for result in answer.results]

    assert delete_group(one.group) == [68]
    delete_offsets(TOPIC)
    delete_offsets("unheard-of")
    delete_offsets(TOPIC, "never-was")
    assert one.committed() == (5, 0)
    assert one.leave() == 0
    delete_offsets(TOPIC)
    assert one.committed() == (-1, 0)
    assert one.described().group_state == "Dead", "nothing was left of it"
    other = Member(cluster)
    assert other.commit(6) == 0
    assert delete_group(other.group) == [0]
    assert delete_group(other.group) == [69]
    assert other.committed() == (-1, 0)
