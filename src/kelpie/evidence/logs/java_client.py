"""What the Java consumer writes, 0.9 to 4.x, classic and KIP-848.

0.9 writes nearly everything at DEBUG and finds no words for the coordinator it found; 0.10 and 0.11 name the
group in each message; since 1.0 it is in the bracket: "[Consumer clientId=c, groupId=g] ", for static members
"[Consumer instanceId=i, clientId=c, groupId=g] ".
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.errors import ErrorCode
from kelpie.evidence.logs.matching import Found, Message, Pattern, says
from kelpie.observations import EventKind as Kind

_NOT_CLIENTS = (
    "ReplicaFetcher",
    "RaftManager",
    "Controller",
    "BrokerToController",
    "NodeToController",
    "Broker",
)
_POLL_TIMEOUT = "consumer poll timeout has expired."
_LOOKUP_BODY = re.compile(
    r"\{group_id=(.*?)\}.*?responseBody=\{error_code=(-?\d{1,5}),coordinator=\{node_id=(-?\d{1,10})"
)
_ADDED = re.compile(r"Added partitions \(assigned - owned\): *(\[.*?\])")
_LOOKUP_ERROR_NONE = 0
_BY_ERROR: dict[object, Kind] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: Kind.PROTOCOL_REFUSED,
    ErrorCode.GROUP_MAX_SIZE_REACHED: Kind.GROUP_FULL,
    ErrorCode.FENCED_INSTANCE_ID: Kind.FENCED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Kind.NOT_AUTHORISED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Kind.NOT_AUTHORISED,
    ErrorCode.UNRELEASED_INSTANCE_ID: Kind.FENCED,
}


def _refused(found: Found, _: Message) -> Sequence[Found]:
    """The fatal errors of joining, each a trouble of its own."""
    reason = str(found.fields.get("reason", ""))
    if "incompatible" in reason or "supported protocols" in reason:
        return [replace(found, fields={**found.fields, "error": ErrorCode.INCONSISTENT_GROUP_PROTOCOL.value})]
    if "max size" in reason or "maximum size" in reason:
        full = {**found.fields, "error": ErrorCode.GROUP_MAX_SIZE_REACHED.value}
        return [replace(found, kind=Kind.GROUP_FULL, fields=full)]
    kind = _BY_ERROR.get(found.fields.get("error"))
    return [replace(found, kind=kind)] if kind is not None else []


def _leaving(found: Found, _: Message) -> Sequence[Found]:
    """From 2.4 to 2.8 the reason of leaving is the only word about a poll that came too late."""
    reason = str(found.fields.get("reason", ""))
    if reason.startswith(_POLL_TIMEOUT) and len(reason) > len(_POLL_TIMEOUT):
        return [replace(found, kind=Kind.POLL_INTERVAL_EXCEEDED), found]
    return [found]


def _lost(found: Found, _: Message) -> Sequence[Found]:
    if "session timed out" in str(found.fields.get("reason", "")):
        return [replace(found, kind=Kind.SESSION_LOST), found]
    return [found]


def _unless_empty(found: Found, _: Message) -> Sequence[Found]:
    """Up to 2.3 every first join began with the revocation of nothing."""
    return [] if found.details.get("partitions", "") in ("", "[]", "set()") else [found]


def _lookup_answer(found: Found, _: Message) -> Sequence[Found]:
    """Kafka 0.9 prints the answer as it came, and nothing else."""
    match = _LOOKUP_BODY.search(found.details.get("body", ""))
    if match is None:
        return []
    fields: dict[str, str | int] = {"group": match[1]}
    if int(match[2]) == _LOOKUP_ERROR_NONE:
        return [Found(Kind.COORDINATOR_FOUND, {**fields, "node": int(match[3])})]
    return [Found(Kind.LOOKUP_FAILED, {**fields, "error": int(match[2])})]


def _reconciled(found: Found, message: Message) -> Sequence[Found]:
    """KIP-848: what is added stands in one of the lines that follow."""
    added = _ADDED.search(message.trace)
    return (
        [replace(found, details={"partitions": added[1]})] if added is not None and added[1] != "[]" else []
    )


def _transition(found: Found, _: Message) -> Sequence[Found]:
    """KIP-848: the member's own states."""
    kind = {
        "JOINING": Kind.JOINING,
        "STABLE": Kind.JOINED,
        "FENCED": Kind.FENCED,
        "STALE": Kind.POLL_INTERVAL_EXCEEDED,
        "PREPARE_LEAVING": Kind.LEAVING,
    }.get(found.details.get("to", ""))
    return [] if kind is None else [replace(found, kind=kind)]


def _nothing(*_: object) -> Sequence[Found]:
    return []


_15, _16 = ErrorCode.COORDINATOR_NOT_AVAILABLE.value, ErrorCode.NOT_COORDINATOR.value
_22, _25, _27 = (
    ErrorCode.ILLEGAL_GENERATION.value,
    ErrorCode.UNKNOWN_MEMBER_ID.value,
    ErrorCode.REBALANCE_IN_PROGRESS.value,
)

PATTERNS: tuple[Pattern, ...] = (
    # The coordinator: found, lost, looked for in vain.
    says(Kind.COORDINATOR_FOUND, "Discovered coordinator {node} for group {group}."),
    says(Kind.COORDINATOR_FOUND, "Discovered group coordinator {node}"),
    says(Kind.COORDINATOR_LOST, "Marking the coordinator {node} dead."),
    says(Kind.COORDINATOR_LOST, "Marking the coordinator {node} dead for group {group}"),
    says(
        Kind.COORDINATOR_LOST,
        "Group coordinator {node} is unavailable or invalid, will attempt rediscovery",
    ),
    says(
        Kind.COORDINATOR_LOST,
        "Group coordinator {node} is unavailable or invalid due to cause: {reason}.isDisconnected: "
        "{disconnected}. Rediscovery will be attempted.",
        then=_lost,
    ),
    says(
        Kind.COORDINATOR_LOST,
        "Group coordinator {node} is unavailable or invalid due to cause: {reason}. isDisconnected: "
        "{disconnected}. Rediscovery will be attempted.",
        then=_lost,
    ),
    says(
        Kind.COORDINATOR_LOST,
        "Group coordinator {node} is unavailable or invalid due to cause: {reason}. Rediscovery will be "
        "attempted.",
        then=_lost,
    ),
    says(Kind.LOOKUP_FAILED, "Group metadata response {body}", then=_lookup_answer),
    says(Kind.LOOKUP_FAILED, "Group coordinator lookup for group {group} failed: {error}", error=_15),
    says(Kind.LOOKUP_FAILED, "Group coordinator lookup failed: {error}", error=_15),
    says(Kind.NOT_AUTHORISED, "FindCoordinator request failed due to authorization error {error}", error=30),
    says(Kind.LOOKUP_FAILED, "FindCoordinator request failed due to {error}"),
    says(Kind.LOOKUP_FAILED, "FindCoordinator request hit fatal exception…"),
    # Connections.
    says(
        Kind.CONNECTION_FAILED,
        "Connection to node {node} could not be established. Broker may not be available.",
        not_within=_NOT_CLIENTS,
    ),
    says(
        Kind.CONNECTION_FAILED,
        "Connection to node {node} ({address}) could not be established. {*} may not be available.",
        not_within=_NOT_CLIENTS,
    ),
    says(
        Kind.CONNECTION_FAILED,
        "Connection to node {node} terminated during authentication. {reason}",
        not_within=_NOT_CLIENTS,
    ),
    says(
        Kind.CONNECTION_FAILED,
        "Connection to node {node} ({address}) terminated during authentication. {reason}",
        not_within=_NOT_CLIENTS,
    ),
    says(
        Kind.NOT_AUTHORISED,
        "Connection to node {node} failed authentication due to: {error}",
        not_within=_NOT_CLIENTS,
        error=ErrorCode.SASL_AUTHENTICATION_FAILED.value,
    ),
    says(
        Kind.NOT_AUTHORISED,
        "Connection to node {node} ({address}) failed authentication due to: {error}",
        not_within=_NOT_CLIENTS,
        error=ErrorCode.SASL_AUTHENTICATION_FAILED.value,
    ),
    says(Kind.CONNECTION_FAILED, "Bootstrap broker {address} disconnected", not_within=_NOT_CLIENTS),
    says(Kind.CONNECTION_FAILED, "Error connecting to node {node} at {address}…", not_within=_NOT_CLIENTS),
    says(Kind.NOT_AUTHORISED, "Not authorized to read from partition {tp}.", error=29),
    says(Kind.NOT_AUTHORISED, "Not authorized to access group: {group}", error=30),
    says(Kind.NOT_AUTHORISED, "Not authorized to commit to topics {topics}", error=29),
    # Membership.
    says(Kind.JOINING, "(Re-)joining group {group}"),
    says(Kind.JOINING, "(Re-)joining group"),
    says(Kind.JOINED, "Joined group: {error_code=0,generation_id={generation},{*},member_id={member},…"),
    says(
        Kind.JOINED,
        "Successfully joined group with generation Generation{generationId={generation}, "
        "memberId='{member}', protocol='{protocol}'}",
    ),
    says(Kind.JOINED, "Successfully joined group with generation {generation}"),
    says(Kind.JOINED, "Successfully joined group {group} with generation {generation}"),
    says(
        Kind.JOINED,
        "Member {member} with epoch {generation} transitioned from {from} to {to}.",
        then=_transition,
    ),
    says(Kind.ASSIGNED, "Setting newly assigned partitions {partitions} for group {group}"),
    says(Kind.ASSIGNED, "Setting newly assigned partitions {partitions}"),
    says(Kind.ASSIGNED, "Adding newly assigned partitions: {partitions}"),
    says(Kind.ASSIGNED, "Reconciling assignment with local epoch {*}", then=_reconciled),
    says(
        Kind.REVOKED,
        "Revoking previously assigned partitions {partitions} for group {group}",
        then=_unless_empty,
    ),
    says(Kind.REVOKED, "Revoking previously assigned partitions {partitions}", then=_unless_empty),
    says(Kind.REVOKED, "Revoke previously assigned partitions {partitions}", then=_unless_empty),
    says(Kind.REVOKED, "Lost previously assigned partitions {partitions}", reason="lost", then=_unless_empty),
    says(Kind.LEAVING, "Sending LeaveGroup request to coordinator {node} for group {group}"),
    says(Kind.LEAVING, "Sending LeaveGroup request to coordinator {node}"),
    says(Kind.LEAVING, "Member {member} sending LeaveGroup request to coordinator {node}"),
    says(
        Kind.LEAVING,
        "Member {member} sending LeaveGroup request to coordinator {node} due to {reason}",
        then=_leaving,
    ),
    says(
        Kind.POLL_INTERVAL_EXCEEDED,
        "This member will leave the group because consumer poll timeout has expired.…",
    ),
    says(Kind.POLL_INTERVAL_EXCEEDED, "consumer poll timeout has expired.…"),
    says(Kind.POLL_INTERVAL_EXCEEDED, "Consumer poll timeout has expired.…"),
    # Heartbeats.
    says(Kind.HEARTBEAT_FAILED, "Attempt to heart beat failed since the group is rebalancing…", error=_27),
    says(Kind.HEARTBEAT_FAILED, "Attempt to heart beat failed since coordinator is either not…", error=_16),
    says(Kind.HEARTBEAT_FAILED, "Attempt to heart beat failed since generation id is not legal…", error=_22),
    says(Kind.HEARTBEAT_FAILED, "Attempt to heart beat failed since member id is not valid…", error=_25),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat failed for group {group} since it is rebalancing.",
        error=_27,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat failed for group {group} since coordinator {node} is either not…",
        error=_16,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat failed for group {group} since generation id is not legal.",
        error=_22,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat failed for group {group} since member id is not valid.",
        error=_25,
    ),
    says(Kind.HEARTBEAT_FAILED, "Attempt to heartbeat failed since group is rebalancing", error=_27),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat failed since coordinator {node} is either not…",
        error=_16,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat failed since generation {generation} is not current",
        error=_22,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat failed for since member id {member} is not valid.",
        error=_25,
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat with Generation{generationId={generation}, memberId='{member}', {*} and group "
        "instance id {instance} failed due to {error}, resetting generation",
    ),
    says(
        Kind.HEARTBEAT_FAILED,
        "Attempt to heartbeat with {*} and group instance id {instance} failed due to {error}, resetting "
        "generation",
    ),
    says(Kind.HEARTBEAT_FAILED, "Request joining group due to: group is already rebalancing", error=_27),
    # Fencing and refusals.
    says(Kind.FENCED, "Received fatal exception: group.instance.id gets fenced", error=82),
    says(
        Kind.FENCED,
        "Caught fenced group.instance.id Optional[{instance_id}] error in heartbeat thread",
        error=82,
    ),
    says(
        Kind.FENCED,
        "JoinGroup failed: The group instance id Optional[{instance_id}] has been fenced by another "
        "instance.…",
        error=82,
    ),
    says(
        Kind.FENCED,
        "SyncGroup failed: The group instance id Optional[{instance_id}] has been fenced by another "
        "instance.…",
        error=82,
    ),
    says(
        Kind.FENCED,
        "JoinGroup failed: The group instance id {instance_id} has been fenced by another instance.…",
        error=82,
    ),
    says(
        Kind.FENCED,
        "SyncGroup failed: The group instance id {instance_id} has been fenced by another instance.…",
        error=82,
    ),
    says(
        Kind.FENCED, "OffsetCommit failed with {*} due to group instance id {instance_id} fenced…", error=82
    ),
    says(Kind.FENCED, "Attempt to heartbeat failed{*}fenced{*}", error=82),
    says(Kind.PROTOCOL_REFUSED, "JoinGroup failed due to fatal error: {error}", then=_refused),
    says(Kind.PROTOCOL_REFUSED, "Attempt to join group failed due to fatal error: {error}", then=_refused),
    says(
        Kind.PROTOCOL_REFUSED,
        "Attempt to join group {group} failed due to fatal error: {error}",
        then=_refused,
    ),
    # Commits.
    says(Kind.COMMIT_FAILED, "Auto offset commit failed for group {group}: {error}"),
    says(Kind.COMMIT_FAILED, "Auto offset commit failed: {error}"),
    says(Kind.COMMIT_FAILED, "Error {error} occurred while committing offsets for group {group}"),
    says(Kind.COMMIT_FAILED, "Offset commit for group {group} failed: {error}"),
    says(Kind.COMMIT_FAILED, "Offset commit failed on partition {tp} at offset {offset}: {error}"),
    says(Kind.COMMIT_FAILED, "Offset commit failed: {error}"),
    says(Kind.COMMIT_FAILED, "OffsetCommit failed with {*}: {error}"),
    says(Kind.COMMIT_FAILED, "OffsetCommit failed for group {group} {*}: {error}"),
    says(
        Kind.COMMIT_FAILED,
        "Asynchronous auto-commit of offsets failed: {error}. Will continue to join group.",
    ),
    says(
        Kind.COMMIT_FAILED,
        "Asynchronous auto-commit of offsets {offsets} failed due to retriable error: {error}",
    ),
    says(Kind.COMMIT_FAILED, "Asynchronous auto-commit of offsets {*} failed: {error}"),
    says(Kind.COMMIT_FAILED, "Synchronous auto-commit of offsets {*} failed: {error}"),
    says(Kind.COMMIT_FAILED, "Auto-commit of offsets {*} failed: {error}"),
    says(Kind.COMMIT_FAILED, "Auto-commit of offsets {*} failed"),
    says(Kind.COMMIT_FAILED, "Auto-commit of offsets {*} failed for group {group}: {error}"),
    says(
        Kind.COMMIT_FAILED,
        "Failing OffsetCommit request since the consumer is not part of an active group",
        error=_25,
    ),
    # Positions.
    says(Kind.NO_COMMITTED_OFFSET, "No committed offset for partition {tp}"),
    says(Kind.NO_COMMITTED_OFFSET, "Group {group} has no committed offset for partition {tp}"),
    says(Kind.NO_COMMITTED_OFFSET, "Found no committed offset for partition {tp}"),
    says(Kind.POSITION_RESET, "Resetting offset for partition {tp} to the committed offset…", then=_nothing),
    says(Kind.POSITION_RESET, "Resetting offset for partition {tp} to offset {offset}."),
    says(Kind.POSITION_RESET, "Resetting offset for partition {tp} to position {position}."),
    says(Kind.POSITION_RESET, "Resetting offset for partition {tp} to {policy} offset."),
    says(Kind.OUT_OF_RANGE, "Fetch offset {offset} is out of range, resetting offset", error=1),
    says(Kind.OUT_OF_RANGE, "Fetch offset {offset} is out of range for partition {tp}, {*}", error=1),
    says(Kind.OUT_OF_RANGE, "Fetch position {position} is out of range for partition {tp}, {*}", error=1),
    says(
        Kind.TRUNCATION_DETECTED,
        "Truncation detected for partition {tp} at offset {position}, resetting offset to the first offset "
        "known to diverge {diverged_at}",
    ),
    says(Kind.TRUNCATION_DETECTED, "Truncation detected for partition {tp} at offset {position}, {*}"),
    says(
        Kind.TRUNCATION_DETECTED,
        "Truncation detected for partition {tp} at offset {position} (the end offset from the broker is "
        "{diverged_at}), {*}",
    ),
    says(
        Kind.UNSTABLE_OFFSET,
        "The following partitions still have unstable offsets which are not cleared on the broker side: "
        "{partitions}, this could be…",
        error=88,
    ),
)
