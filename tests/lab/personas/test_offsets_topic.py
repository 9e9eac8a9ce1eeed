"""What a release writes to `__consumer_offsets`, record by record: tools and later releases read it."""

from kelpie.wire.api.delete_groups import DeleteGroupsRequest
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.lab.personas import personas
from tests.lab.personas.cluster import TOPIC, Cluster
from tests.lab.personas.log import group_records
from tests.lab.personas.member import Member, assemble


def keep(cluster: Cluster, group: str) -> list[str]:
    """For the comparison of the lab with real Kafka."""
    told = group_records(cluster, group)
    cluster.transcript.lines += told
    return told


@personas()
def test_a_group_is_written_with_every_assignment_and_when_it_empties(cluster: Cluster) -> None:
    """Members, subscriptions and assignments in the release's own version; 0.9 buries the group."""
    one, two = Member(cluster, "one"), Member(cluster, "two")
    assemble(one, two)
    assert two.leave() == 0
    assert one.leave() == 0
    told = keep(cluster, one.group)
    version = "v0" if cluster.is_first else "v3"
    assert [line.count(f"GROUP_METADATA  {version}") for line in told[:2]] == [1, 1]
    assert ("tombstone" in told[-1]) == cluster.is_first


@personas()
def test_offsets_are_written_in_the_version_of_the_release(cluster: Cluster) -> None:
    """0.9 says when each expires (version 1); 2.1 and later leave that to the group (version 3)."""
    one = Member(cluster)
    assemble(one)
    assert one.commit(5, metadata="all of it") == 0
    assert one.commit(6, metadata=None) == 0
    assert one.commit(7, version=1) == 0
    assert one.commit(8, version=2) == 0
    assert one.commit(9, version=2, retention_time_ms=60_000) == 0
    partitions = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="twice")
        for offset in (10, 11)
    ]
    twice = OffsetCommitRequest(
        group_id=one.group,
        generation_id_or_member_epoch=one.generation,
        member_id=one.id,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
    )
    one.client.ask(twice, one.versions["Commit"])
    told = keep(cluster, one.group)
    assert ("magic 0" if cluster.is_first else "magic 2") in told[0]
    assert ("OFFSET_COMMIT letters-0 v1" if cluster.is_first else "OFFSET_COMMIT letters-0 v3") in told[1]
    assert "'expire_timestamp': 60000" in told[5]


@personas()
def test_a_group_of_offsets_only(cluster: Cluster) -> None:
    """Nothing but the offset is written; there is no group to speak of."""
    one = Member(cluster)
    assert one.commit(1) == 0
    assert len(keep(cluster, one.group)) == 1


@personas("2.8", "3.9")
def test_a_static_member_that_returns_is_written_anew(cluster: Cluster) -> None:
    """The next coordinator must know it by its new id."""
    one = Member(cluster, instance="instance")
    assemble(one)
    one.id = ""
    assert one.join().error_code == 0
    told = keep(cluster, one.group)
    assert len(told) == 2
    assert all("'group_instance_id': 'instance'" in line for line in told)


@personas("2.8", "3.9")
def test_a_deleted_group_is_buried_with_its_offsets(cluster: Cluster) -> None:
    """Tombstones, so that compaction removes what was written."""
    one = Member(cluster)
    assemble(one)
    assert one.commit(1) == 0
    assert one.leave() == 0
    answer = one.client.ask(DeleteGroupsRequest(groups_names=[one.group]), 2)
    assert [result.error_code for result in answer.results] == [0]
    assert sum(line.count("tombstone") for line in keep(cluster, one.group)) == 2
