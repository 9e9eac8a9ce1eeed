"""Every wording of the Java consumer of 0.9 to 0.11, as its sources have it."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import pytest

from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, in_log4j, told

NODE = "10.0.0.2:9092 (id: 2147483645 rack: null)"

# Before 1.0: no bracket; 0.10 and 0.11 name the group, 0.9 does not.
OLD = [
    (
        "Group metadata response ClientResponse(receivedTimeMs=1794767120859, disconnected=false, "
        "request=ClientRequest(expectResponse=true, callback=…, request=RequestSend(header={api_key=10,"
        "api_version=0,correlation_id=2,client_id=consumer-1}, body={group_id=billing-1}), "
        "createdTimeMs=1794767120850, sendTimeMs=1794767120854), "
        "responseBody={error_code=15,coordinator={node_id=-1,host=,port=-1}})",
        Kind.LOOKUP_FAILED,
        {"group": "billing-1", "error": 15},
    ),
    (
        "Group metadata response ClientResponse(receivedTimeMs=1, request=RequestSend(header={api_key=10}, "
        "body={group_id=billing-0})), responseBody={error_code=0,coordinator={node_id=2,host=h,port=1}})",
        Kind.COORDINATOR_FOUND,
        {"group": "billing-0", "node": 2},
    ),
    ("Marking the coordinator 2147483645 dead.", Kind.COORDINATOR_LOST, {"node": 2}),
    (f"Discovered coordinator {NODE} for group g1.", Kind.COORDINATOR_FOUND, {"group": "g1", "node": 2}),
    (f"Marking the coordinator {NODE} dead for group g1", Kind.COORDINATOR_LOST, {"group": "g1", "node": 2}),
    (
        "Group coordinator lookup for group g1 failed: The coordinator is not available.",
        Kind.LOOKUP_FAILED,
        {"group": "g1", "error": 15, "reason": "The coordinator is not available."},
    ),
    ("(Re-)joining group g1", Kind.JOINING, {"group": "g1"}),
    (
        "Joined group: {error_code=0,generation_id=1,group_protocol=range,leader_id=consumer-1-aa,"
        "member_id=consumer-1-aa,members=[{member_id=consumer-1-aa,member_metadata=x}]}",
        Kind.JOINED,
        {"generation": 1, "member": "consumer-1-aa"},
    ),
    ("Successfully joined group g1 with generation 7", Kind.JOINED, {"group": "g1", "generation": 7}),
    (
        "Attempt to heart beat failed since the group is rebalancing, try to re-join group.",
        Kind.HEARTBEAT_FAILED,
        {"error": 27},
    ),
    (
        "Attempt to heart beat failed since coordinator is either not started or not valid, marking it as dead.",
        Kind.HEARTBEAT_FAILED,
        {"error": 16},
    ),
    (
        "Attempt to heart beat failed since generation id is not legal, try to re-join group.",
        Kind.HEARTBEAT_FAILED,
        {"error": 22},
    ),
    (
        "Attempt to heart beat failed since member id is not valid, reset it and try to re-join group.",
        Kind.HEARTBEAT_FAILED,
        {"error": 25},
    ),
    (
        "Attempt to heartbeat failed for group g1 since it is rebalancing.",
        Kind.HEARTBEAT_FAILED,
        {"group": "g1", "error": 27},
    ),
    (
        f"Attempt to heartbeat failed for group g1 since coordinator {NODE} is either not started or not valid.",
        Kind.HEARTBEAT_FAILED,
        {"group": "g1", "node": 2, "error": 16},
    ),
    (
        "Attempt to heartbeat failed for group g1 since generation id is not legal.",
        Kind.HEARTBEAT_FAILED,
        {"group": "g1", "error": 22},
    ),
    (
        "Attempt to heartbeat failed for group g1 since member id is not valid.",
        Kind.HEARTBEAT_FAILED,
        {"group": "g1", "error": 25},
    ),
    ("Revoking previously assigned partitions [t-0, t-1]", Kind.REVOKED, {"partitions": "[t-0, t-1]"}),
    (
        "Revoking previously assigned partitions [t-0] for group g1",
        Kind.REVOKED,
        {"group": "g1", "partitions": "[t-0]"},
    ),
    ("Setting newly assigned partitions [t-0]", Kind.ASSIGNED, {"partitions": "[t-0]"}),
    (
        "Setting newly assigned partitions [t-0] for group g1",
        Kind.ASSIGNED,
        {"group": "g1", "partitions": "[t-0]"},
    ),
    (
        "No committed offset for partition my-topic-3",
        Kind.NO_COMMITTED_OFFSET,
        {"topic": "my-topic", "partition": 3},
    ),
    (
        "Group g1 has no committed offset for partition t-3",
        Kind.NO_COMMITTED_OFFSET,
        {"group": "g1", "topic": "t", "partition": 3},
    ),
    (
        "Resetting offset for partition t-3 to earliest offset.",
        Kind.POSITION_RESET,
        {"topic": "t", "partition": 3, "policy": "earliest"},
    ),
    (
        "Resetting offset for partition t-3 to offset 17.",
        Kind.POSITION_RESET,
        {"topic": "t", "partition": 3, "offset": 17},
    ),
    ("Fetch offset 17 is out of range, resetting offset", Kind.OUT_OF_RANGE, {"offset": 17, "error": 1}),
    (
        "Fetch offset 17 is out of range for partition t-3, resetting offset",
        Kind.OUT_OF_RANGE,
        {"topic": "t", "partition": 3, "offset": 17, "error": 1},
    ),
    (
        f"Sending LeaveGroup request to coordinator {NODE} for group g1",
        Kind.LEAVING,
        {"group": "g1", "node": 2},
    ),
    (
        "Auto offset commit failed: Commit cannot be completed due to group rebalance",
        Kind.COMMIT_FAILED,
        {"reason": "Commit cannot be completed due to group rebalance"},
    ),
    (
        "Auto offset commit failed for group g1: Commit cannot be completed",
        Kind.COMMIT_FAILED,
        {"group": "g1", "reason": "Commit cannot be completed"},
    ),
    (
        "Error ILLEGAL_GENERATION occurred while committing offsets for group g1",
        Kind.COMMIT_FAILED,
        {"group": "g1", "reason": "ILLEGAL_GENERATION", "error": 22},
    ),
    (
        "Offset commit for group g1 failed: The coordinator is not aware of this member.",
        Kind.COMMIT_FAILED,
        {"group": "g1", "error": 25, "reason": "The coordinator is not aware of this member."},
    ),
    ("Bootstrap broker 10.0.0.1:9092 disconnected", Kind.CONNECTION_FAILED, {"address": "10.0.0.1:9092"}),
]


@pytest.mark.parametrize(("message", "kind", "expected"), OLD)
def test_what_consumers_before_1_0_write_is_understood(
    message: str, kind: Kind, expected: dict[str, object]
) -> None:
    """Their words were others, and the group is in the message or nowhere."""
    (event,) = events_of(*in_log4j([message]))
    assert event.kind is kind
    assert told(event) == expected
