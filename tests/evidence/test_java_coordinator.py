"""Every wording of group coordinators, from 0.9 to 4.x, as their sources have it."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import pytest

from kelpie.lab.broker_log import words_of
from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, in_log4j, told

OLD = "[GroupCoordinator 1]: "
NEW = "[GroupCoordinator id=1 topic=__consumer_offsets partition=25] "
RUNTIME = "[GroupCoordinator id=1] "
OF_OLD: dict[str, object] = {"node": 1}
OF_NEW: dict[str, object] = {"node": 1, "topic": "__consumer_offsets", "partition": 25}
P25 = {"topic": "__consumer_offsets", "partition": 25}
METADATA_0_9 = "[Group Metadata Manager on Broker 1]: "
METADATA = "[GroupMetadataManager brokerId=1] "

GROUPS = [
    # 0.9 and 0.10
    (
        OLD + "Preparing to restabilize group g with old generation 3",
        Kind.REBALANCE_STARTED,
        OF_OLD | {"group": "g", "generation": 3},
    ),
    (
        OLD + "Stabilized group g generation 4",
        Kind.GENERATION_JOINED,
        OF_OLD | {"group": "g", "generation": 4},
    ),
    (
        OLD + "Assignment received from leader for group g for generation 4",
        Kind.ASSIGNMENT_RECEIVED,
        OF_OLD | {"group": "g", "generation": 4},
    ),
    (OLD + "Member m-1 in group g has failed", Kind.MEMBER_EXPIRED, OF_OLD | {"group": "g", "member": "m-1"}),
    (
        OLD + "Group g generation 4 is dead and removed",
        Kind.GROUP_EMPTY,
        OF_OLD | {"group": "g", "generation": 4},
    ),
    (
        OLD + "Group g with generation 4 is now empty",
        Kind.GROUP_EMPTY,
        OF_OLD | {"group": "g", "generation": 4},
    ),
    # 0.11 to 2.0
    (
        OLD + "Preparing to rebalance group g with old generation 3 (__consumer_offsets-25)",
        Kind.REBALANCE_STARTED,
        OF_OLD | P25 | {"group": "g", "generation": 3},
    ),
    (
        OLD + "Stabilized group g generation 4 (__consumer_offsets-25)",
        Kind.GENERATION_JOINED,
        OF_OLD | P25 | {"group": "g", "generation": 4},
    ),
    (
        OLD + "Member m-1 in group g has failed, removing it from the group",
        Kind.MEMBER_EXPIRED,
        OF_OLD | {"group": "g", "member": "m-1"},
    ),
    (
        OLD + "Member m-1 in group g has left, removing it from the group",
        Kind.MEMBER_LEFT,
        OF_OLD | {"group": "g", "member": "m-1"},
    ),
    (
        OLD + "Group g with generation 4 is now empty (__consumer_offsets-25)",
        Kind.GROUP_EMPTY,
        OF_OLD | P25 | {"group": "g", "generation": 4},
    ),
    # 2.1 to 3.x
    (
        OLD + "Preparing to rebalance group g in state PreparingRebalance with old generation 3 "
        "(__consumer_offsets-25) (reason: Adding new member m-1 with group instance id None)",
        Kind.REBALANCE_STARTED,
        OF_OLD
        | P25
        | {
            "group": "g",
            "generation": 3,
            "state": "PreparingRebalance",
            "reason": "Adding new member m-1 with group instance id None",
        },
    ),
    (
        OLD + "Stabilized group g generation 4 (__consumer_offsets-25) with 3 members",
        Kind.GENERATION_JOINED,
        OF_OLD | P25 | {"group": "g", "generation": 4, "members": "3"},
    ),
    (
        OLD
        + "Assignment received from leader for group g for generation 4. The group has 3 members, 1 of which are static.",
        Kind.ASSIGNMENT_RECEIVED,
        OF_OLD | {"group": "g", "generation": 4, "members": "3", "static_members": "1"},
    ),
    (
        OLD
        + "Assignment received from leader m-1 for group g for generation 4. The group has 3 members, 1 of which are static.",
        Kind.ASSIGNMENT_RECEIVED,
        OF_OLD | {"group": "g", "generation": 4, "member": "m-1", "members": "3", "static_members": "1"},
    ),
    (
        OLD
        + "Member[group.instance.id Some(i1), member.id m-1] in group g has left, removing it from the group",
        Kind.MEMBER_LEFT,
        OF_OLD | {"group": "g", "member": "m-1", "instance_id": "i1"},
    ),
    (
        OLD + "Member MemberMetadata(memberId=m-1, groupInstanceId=None, clientId=c, clientHost=/10.0.0.1, "
        "sessionTimeoutMs=10000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group g "
        "through explicit `LeaveGroup` request",
        Kind.MEMBER_LEFT,
        OF_OLD | {"group": "g", "member": "m-1"},
    ),
    (
        OLD
        + "Member MemberMetadata(memberId=m-1, groupInstanceId=Some(i1), clientId=c) has left group g through "
        "explicit `LeaveGroup`; client reason: the consumer is being closed",
        Kind.MEMBER_LEFT,
        OF_OLD
        | {"group": "g", "member": "m-1", "instance_id": "i1", "reason": "the consumer is being closed"},
    ),
    (
        OLD
        + "Dynamic member with unknown member id joins group g in Empty state. Created a new member id m-1 and "
        "request the member to rejoin with this id.",
        Kind.MEMBER_JOINED,
        OF_OLD | {"group": "g", "member": "m-1", "state": "Empty"},
    ),
    (
        OLD + "given member.id m-1 is identified as a known static member i1, but not matching the expected "
        "member.id m-2",
        Kind.MEMBER_FENCED,
        OF_OLD | {"member": "m-1", "instance_id": "i1", "expected": "m-2"},
    ),
    (
        METADATA + "Group g transitioned to Dead in generation 4",
        Kind.GROUP_REMOVED,
        OF_OLD | {"group": "g", "generation": 4, "reason": "expired"},
    ),
    # 4.x
    (
        NEW
        + "Preparing to rebalance group g in state PreparingRebalance with old generation 3 (reason: explicit "
        "`LeaveGroup` request for (m-1) members.).",
        Kind.REBALANCE_STARTED,
        OF_NEW
        | {
            "group": "g",
            "generation": 3,
            "state": "PreparingRebalance",
            "reason": "explicit `LeaveGroup` request for (m-1) members.",
        },
    ),
    (
        NEW + "Stabilized group g generation 4 with 3 members.",
        Kind.GENERATION_JOINED,
        OF_NEW | {"group": "g", "generation": 4, "members": "3"},
    ),
    (
        NEW + "Member m-1 in group g has failed, removing it from the group.",
        Kind.MEMBER_EXPIRED,
        OF_NEW | {"group": "g", "member": "m-1"},
    ),
    (
        NEW
        + "[Group g] Member m-1 has left group through explicit `LeaveGroup` request; client reason: not provided",
        Kind.MEMBER_LEFT,
        OF_NEW | {"group": "g", "member": "m-1", "reason": "not provided"},
    ),
    (
        NEW + "Group g with generation 4 is now empty.",
        Kind.GROUP_EMPTY,
        OF_NEW | {"group": "g", "generation": 4},
    ),
    (
        NEW
        + "Dynamic member with unknown member id joins group g in Empty state. Created a new member id m-1 and "
        "requesting the member to rejoin with this id.",
        Kind.MEMBER_JOINED,
        OF_NEW | {"group": "g", "member": "m-1", "state": "Empty"},
    ),
    (
        NEW + "[GroupId g] Member m-1 joins the consumer group using the consumer protocol.",
        Kind.MEMBER_JOINED,
        OF_NEW | {"group": "g", "member": "m-1", "protocol": "consumer"},
    ),
    (
        NEW + "[GroupId g] Member m-1 fenced from the group because its session expired.",
        Kind.MEMBER_EXPIRED,
        OF_NEW | {"group": "g", "member": "m-1", "reason": "its session expired"},
    ),
    (
        NEW
        + "[GroupId g] Member m-1 fenced from the group because it failed to transition from epoch 5 within "
        "300000ms.",
        Kind.MEMBER_FENCED,
        OF_NEW
        | {"group": "g", "member": "m-1", "reason": "it failed to transition from epoch 5 within 300000ms"},
    ),
    (
        NEW + "[GroupId g] Computed a new target assignment for epoch 5 with 'uniform' assignor in 2ms.",
        Kind.ASSIGNMENT_RECEIVED,
        OF_NEW | {"group": "g", "generation": 5, "assignor": "uniform", "duration_ms": "2"},
    ),
    (
        NEW + "The following groups were deleted: g. A total of 9 offsets were removed.",
        Kind.GROUP_REMOVED,
        OF_NEW | {"group": "g", "reason": "deleted", "offsets": "9"},
    ),
]

COORDINATORS = [
    (
        METADATA_0_9 + "Loading offsets and group metadata from [__consumer_offsets,25]",
        Kind.COORDINATOR_LOADING,
        {},
    ),
    (
        METADATA + "Scheduling loading of offsets and group metadata from __consumer_offsets-25",
        Kind.COORDINATOR_LOADING,
        {},
    ),
    (
        METADATA + "Scheduling loading of offsets and group metadata from __consumer_offsets-25 for epoch 7",
        Kind.COORDINATOR_LOADING,
        {"epoch": "7"},
    ),
    (
        RUNTIME + "Scheduling loading of metadata from __consumer_offsets-25 with epoch 7",
        Kind.COORDINATOR_LOADING,
        {"epoch": "7"},
    ),
    (
        METADATA_0_9 + "Finished loading offsets from [__consumer_offsets,25] in 27 milliseconds.",
        Kind.COORDINATOR_LOADED,
        {"duration_ms": "27"},
    ),
    (
        METADATA
        + "Finished loading offsets and group metadata from __consumer_offsets-25 in 27 milliseconds.",
        Kind.COORDINATOR_LOADED,
        {"duration_ms": "27"},
    ),
    (
        METADATA
        + "Finished loading offsets and group metadata from __consumer_offsets-25 in 27 milliseconds, of "
        "which 3 milliseconds was spent in the scheduler.",
        Kind.COORDINATOR_LOADED,
        {"duration_ms": "27"},
    ),
    (
        METADATA
        + "Finished loading offsets and group metadata from __consumer_offsets-25 in 27 milliseconds for "
        "epoch 7, of which 3 milliseconds was spent in the scheduler.",
        Kind.COORDINATOR_LOADED,
        {"duration_ms": "27", "epoch": "7"},
    ),
    (
        RUNTIME
        + "Finished loading of metadata from __consumer_offsets-25 with epoch 7 in 27ms where 3ms was spent "
        "in the scheduler. Loaded 12 records which total to 3400 bytes.",
        Kind.COORDINATOR_LOADED,
        {"duration_ms": "27", "epoch": "7", "records": "12", "bytes": "3400"},
    ),
    (
        METADATA_0_9 + "Removed 5 cached offsets for [__consumer_offsets,25] on follower transition.",
        Kind.COORDINATOR_UNLOADED,
        {"offsets": "5"},
    ),
    (
        METADATA + "Finished unloading __consumer_offsets-25. Removed 5 cached offsets and 2 cached groups.",
        Kind.COORDINATOR_UNLOADED,
        {"offsets": "5", "groups": "2"},
    ),
    (
        METADATA
        + "Finished unloading __consumer_offsets-25 for coordinator epoch OptionalInt[7]. Removed 5 cached "
        "offsets and 2 cached groups.",
        Kind.COORDINATOR_UNLOADED,
        {"offsets": "5", "groups": "2", "epoch": "OptionalInt[7]"},
    ),
    (
        RUNTIME + "Finished unloading metadata for __consumer_offsets-25 with epoch OptionalInt[7].",
        Kind.COORDINATOR_UNLOADED,
        {"epoch": "OptionalInt[7]"},
    ),
    (
        RUNTIME + "Failed to load metadata from __consumer_offsets-25 with epoch 7 due to "
        "org.apache.kafka.common.errors.NotLeaderOrFollowerException.",
        Kind.COORDINATOR_REFUSED,
        {"epoch": "7", "error": 6, "reason": "org.apache.kafka.common.errors.NotLeaderOrFollowerException"},
    ),
]

SILENT = [
    METADATA + "Removed 0 expired offsets in 2 milliseconds.",
    RUNTIME + "Scheduling loading of metadata from __share_group_state-3 with epoch 7",
    RUNTIME
    + "Ignored unloading metadata for __consumer_offsets-3 in epoch OptionalInt[7] since metadata was never loaded.",
    NEW + "Pending dynamic member with id m-1 joins group g in Empty state. Adding to the group now.",
]


@pytest.mark.parametrize(("message", "kind", "expected"), GROUPS)
def test_what_coordinators_of_every_age_write_of_groups_is_understood(
    message: str, kind: Kind, expected: dict[str, object]
) -> None:
    """Rebalances, members and their causes are in these lines and, before 4.x, nowhere else."""
    (event,) = events_of(*in_log4j([message]))
    assert event.kind is kind
    assert told(event) == expected


@pytest.mark.parametrize(("message", "kind", "details"), COORDINATORS)
def test_coordinators_that_come_and_go_are_understood(
    message: str, kind: Kind, details: dict[str, object]
) -> None:
    """All of them speak of one partition, and each release prints it in its own way."""
    (event,) = events_of(*in_log4j([message]))
    assert event.kind is kind
    assert told(event) == P25 | OF_OLD | details


@pytest.mark.parametrize("line", SILENT)
def test_what_means_nothing_is_let_pass(line: str) -> None:
    """Brokers tell every ten minutes that nothing has happened."""
    assert events_of(*in_log4j([line])) == []


def test_one_line_that_deletes_several_groups_is_an_event_for_each() -> None:
    """Each group is a case of its own."""
    line = NEW + "The following groups were deleted: a, b. A total of 9 offsets were removed."
    assert [event.group for event in events_of(*in_log4j([line]))] == ["a", "b"]


def test_members_that_did_not_rejoin_in_time_are_told_one_by_one() -> None:
    """The rebalance timeout took them out; Scala and Java print the list in their own ways."""
    for late in ("Set(m-1, m-2)", "[m-1, m-2]"):
        (line,) = in_log4j([f"{OLD}Group g removed dynamic members who haven't joined: {late}"])
        assert [(event.kind, event.group, event.member) for event in events_of(line)] == [
            (Kind.MEMBER_LEFT, "g", "m-1"),
            (Kind.MEMBER_LEFT, "g", "m-2"),
        ]


VALUES = {
    "group": "g",
    "generation": 3,
    "member": "m-1",
    "old": "m-0",
    "owner": "m-0",
    "members": "m-1",
    "instance": "i1",
    "option": "Some(i1)",
    "topic": "__consumer_offsets",
    "state": "Stable",
    "during": "heartbeat",
    "reason": "why",
    "client_reason": "why",
}
NO_EVENT = {
    "STATIC_KEPT",
    "NO_MEMBER_REJOINED",
    "LEADER_REPLACED",
    "NO_LEADER_JOINED",
    "PENDING_ADDED",
    "SIMPLE_GROUP_CREATED",
    "GROUP_LOADED",
    "GROUP_UNLOADED",
    "UNLOADING",
}
"""What coordinators tell beside: nothing follows from it, or another line says it, too."""


class _Sample(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return "5"


@pytest.mark.parametrize("persona", ["0.9", "2.8", "3.9", "4.3"])
def test_what_the_labs_brokers_write_is_understood(persona: str) -> None:
    """The lab has the words of each release from its classes: two readings of Kafka must agree."""
    sample = _Sample(VALUES)
    for what, lines in words_of(persona).lines.items():
        written = [f"[2026-11-15 20:56:40,123] {line.filled(sample)}" for line in lines]
        events = events_of(*written)
        assert len(events) == (0 if what in NO_EVENT else 1), (what, written)
        assert {event.group for event in events} <= {"g", None}


def test_a_disk_that_takes_no_record_of_the_offsets_topic_is_told() -> None:
    """Kafka's LogDirFailureChannel names the partition. For other topics it is no matter of a coordinator."""
    line = "[2026-11-15 20:56:40,123] ERROR Error while appending records to {} in dir /data (org.apache.kafka.storage.internals.log.LogDirFailureChannel)"
    trace = "java.io.IOException: No space left on device"
    (event,) = events_of(line.format("__consumer_offsets-25"), trace)
    assert (event.kind, event.error, event.partition) == (Kind.COORDINATOR_REFUSED, 56, 25)
    assert "No space left" in event.text
    assert events_of(line.format("orders-0"), trace) == []
