"""What kafka-python writes: 1.4 to 2.0, and 2.1 to 3.x where the words changed.

Much of it is the Java consumer's of 0.10, word for word: those rows are in `java_client`. A node that
coordinates is called "coordinator-2" there.
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Found, Message, Pattern, says
from kelpie.observations import EventKind as Kind

_REQUESTS = {
    "OffsetCommitRequest": Kind.COMMIT_FAILED,
    "HeartbeatRequest": Kind.HEARTBEAT_FAILED,
    "FindCoordinatorRequest": Kind.LOOKUP_FAILED,
    "GroupCoordinatorRequest": Kind.LOOKUP_FAILED,
}


def _unsent(found: Found, _: Message) -> Sequence[Found]:
    kind = _REQUESTS.get(found.details.get("request", "").partition("_")[0])
    return [] if kind is None else [replace(found, kind=kind)]


PATTERNS: tuple[Pattern, ...] = (
    says(Kind.COORDINATOR_LOST, "Marking the coordinator dead (node {node}) for group {group}: {error}."),
    says(Kind.LOOKUP_FAILED, "Group Coordinator Not Available; retry", error=15),
    says(Kind.NOT_AUTHORISED, "Group Authorization Failed for group {group}", error=30),
    says(
        Kind.JOINED,
        "Successfully joined group {group} <Generation {generation} (member_id: {member}, protocol: "
        "{protocol})>",
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Heartbeat failed for group {group} because it is rebalancing",
        error=ErrorCode.REBALANCE_IN_PROGRESS.value,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Heartbeat failed for group {group}: coordinator (node {node}) is either not started or not valid",
        error=ErrorCode.NOT_COORDINATOR.value,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Heartbeat failed for group {group}: generation id is not  current.",
        error=ErrorCode.ILLEGAL_GENERATION.value,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Heartbeat failed for group {group}: generation id is not current.",
        error=ErrorCode.ILLEGAL_GENERATION.value,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Heartbeat: local member_id was not recognized; this consumer needs to re-join",
        error=ErrorCode.UNKNOWN_MEMBER_ID.value,
    ),
    says(Kind.SESSION_LOST, "Heartbeat session expired, marking coordinator dead"),
    says(Kind.POLL_INTERVAL_EXCEEDED, "Heartbeat poll expired, leaving group"),
    says(Kind.LEAVING, "Leaving consumer group ({group})."),
    says(Kind.LEAVING, "Leaving consumer group {group} (member {member})."),
    says(Kind.OUT_OF_RANGE, "Fetch offset {offset} is out of range for topic-partition {tp}", error=1),
    says(Kind.FENCED, "Heartbeat thread for group {group} failed due to fenced error: {error}", error=82),
    says(
        Kind.FENCED,
        "OffsetCommit for group {group} failed due to group instance id {instance_id} fenced…",
        error=82,
    ),
    says(Kind.COMMIT_FAILED, "OffsetCommit for group {group} failed on partition {tp} due to {error}"),
    says(Kind.COMMIT_FAILED, "OffsetCommit for group {group} failed: {error}"),
    says(Kind.COMMIT_FAILED, "Error sending {request} to node {node} [{error}]", then=_unsent),
    says(Kind.CONNECTION_FAILED, "Connect attempt to {broker} returned error {reason}. Disconnecting."),
    says(
        Kind.CONNECTION_FAILED,
        "<KafkaConnection node_id={node} {*}>: Connection lost: {reason}",
    ),
    says(Kind.CONNECTION_FAILED, "<BrokerConnection {*}node_id={node} {*}>: Connection {*}: {reason}"),
    says(Kind.CONNECTION_FAILED, "Bootstrap connection to {address} failed: {reason}"),
)
