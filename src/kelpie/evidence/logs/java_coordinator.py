"""What group coordinators write: 0.9 to 4.x.

The brackets in front say who writes: "[GroupCoordinator 1]: " up to 3.x, "[GroupCoordinator id=1
topic=__consumer_offsets partition=25] " in 4.x, "[Group Metadata Manager on Broker 1]: " up to 0.11,
"[GroupMetadataManager brokerId=1] " up to 3.x.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.matching import Also, Found, Message, Pattern, says
from kelpie.observations import EventKind as Kind

_MEMBER_ID = re.compile(r"\bmemberId=([^,)]+)|member\.id ([^\],]+)")
_INSTANCE_ID = re.compile(r"\bgroupInstanceId=(?:Some\()?([^,)]+)|group\.instance\.id (?:Some\()?([^,)\]]+)")
_LIST_MARKS = re.compile(r"^(?:Set\(|List\(|\[)|[\])]$")


def _if_any(name: str) -> Also:
    """Brokers tell every ten minutes that they removed nothing."""

    def then(found: Found, _: Message) -> Sequence[Found]:
        return [] if found.details.get(name, "0") == "0" else [found]

    return then


def _deleted(found: Found, _: Message) -> Sequence[Found]:
    """One message for several groups."""
    offsets = {"offsets": found.details.get("offsets", "")}
    groups = [name.strip() for name in found.details.get("groups", "").split(",")]
    return [Found(found.kind, {"group": name, "reason": "deleted"}, offsets) for name in groups if name]


def _left(found: Found, _: Message) -> Sequence[Found]:
    """3.x prints all it knows about the member: take the number out of it."""
    who = found.details.get("who", "")
    fields = dict(found.fields)
    for name, regex in (("member", _MEMBER_ID), ("instance_id", _INSTANCE_ID)):
        match = regex.search(who)
        value = next((it for it in match.groups() if it), "") if match is not None else ""
        if value not in ("", "None", "null"):
            fields[name] = value
    if "member" not in fields and who:
        fields["member"] = who
    return [replace(found, fields=fields, details={k: v for k, v in found.details.items() if k != "who"})]


def _late(found: Found, _: Message) -> Sequence[Found]:
    """Members that did not rejoin within the rebalance timeout: "Set(m-1, m-2)", "[m-1, m-2]"."""
    members = _LIST_MARKS.sub("", found.details.get("late", "")).split(", ")
    fields = {**found.fields, "reason": "it did not rejoin within the rebalance timeout"}
    return [Found(found.kind, {**fields, "member": member}) for member in members if member]


def _fenced(found: Found, _: Message) -> Sequence[Found]:
    if "session expired" in str(found.fields.get("reason", "")):
        return [replace(found, kind=Kind.MEMBER_EXPIRED)]
    return [found]


def _coordination(found: Found, _: Message) -> Sequence[Found]:
    """In 4.x other coordinators, as that of share groups, have the same words."""
    return [found] if found.fields.get("topic") == "__consumer_offsets" else []


PATTERNS: tuple[Pattern, ...] = (
    # Rebalances.
    says(
        Kind.REBALANCE_STARTED,
        "Preparing to restabilize group {group} with old generation {generation}",
    ),
    says(
        Kind.REBALANCE_STARTED,
        "Preparing to rebalance group {group} in state {state} with old generation {generation} "
        "(__consumer_offsets-{p}) (reason: {reason})",
    ),
    says(
        Kind.REBALANCE_STARTED,
        "Preparing to rebalance group {group} in state {state} with old generation {generation} "
        "(reason: {reason}).",
    ),
    says(
        Kind.REBALANCE_STARTED,
        "Preparing to rebalance group {group} with old generation {generation} (__consumer_offsets-{p})",
    ),
    says(Kind.REBALANCE_STARTED, "Preparing to rebalance group {group} with old generation {generation}"),
    says(Kind.GENERATION_JOINED, "Stabilized group {group} generation {generation}"),
    says(Kind.GENERATION_JOINED, "Stabilized group {group} generation {generation} (__consumer_offsets-{p})"),
    says(
        Kind.GENERATION_JOINED,
        "Stabilized group {group} generation {generation} (__consumer_offsets-{p}) with {members} members",
    ),
    says(Kind.GENERATION_JOINED, "Stabilized group {group} generation {generation} with {members} members."),
    says(
        Kind.ASSIGNMENT_RECEIVED,
        "Assignment received from leader for group {group} for generation {generation}",
    ),
    says(
        Kind.ASSIGNMENT_RECEIVED,
        "Assignment received from leader for group {group} for generation {generation}. The group has "
        "{members} members, {static_members} of which are static.",
    ),
    says(
        Kind.ASSIGNMENT_RECEIVED,
        "Assignment received from leader {member} for group {group} for generation {generation}. The group "
        "has {members} members, {static_members} of which are static.",
    ),
    says(
        Kind.ASSIGNMENT_RECEIVED,
        "[GroupId {group}] Computed a new target assignment for epoch {generation} with '{assignor}' "
        "assignor in {duration_ms}ms.",
    ),
    # Members.
    says(
        Kind.MEMBER_JOINED,
        "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id "
        "{member} and request the member to rejoin with this id.",
    ),
    says(
        Kind.MEMBER_JOINED,
        "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id "
        "{member} and requesting the member to rejoin with this id.",
    ),
    says(
        Kind.MEMBER_JOINED,
        "Dynamic Member with unknown member id joins group {group} in {state} state. Created a new member id "
        "{member} for this member and add to the group.",
    ),
    says(
        Kind.MEMBER_JOINED,
        "Dynamic member with unknown member id joins group {group} in state {state}. Created a new member id "
        "{member} and added the member to the group.",
    ),
    says(
        Kind.MEMBER_JOINED, "Adding new static member {instance_id} to group {group} with member id {member}."
    ),
    says(
        Kind.MEMBER_JOINED,
        "Static member with groupInstanceId={instance_id} and unknown member id joins group {group} in "
        "{state} state. Created a new member id {member} for this member and add to the group.",
    ),
    says(
        Kind.MEMBER_JOINED,
        "Static member with groupInstanceId={instance_id} and unknown member id joins group {group} in "
        "{state} state. {*}member id {member}{*}",
    ),
    says(
        Kind.MEMBER_JOINED,
        "Static member {instance_id} of group {group} with unknown member id rejoins, assigning new member "
        "id {member}, while old member id {replaced} will be removed.",
    ),
    says(
        Kind.MEMBER_JOINED,
        "Static member with groupInstanceId={instance_id} and unknown member id joins group {group} in "
        "{state} state. Replacing previously mapped member {replaced} with this groupInstanceId.",
    ),
    says(
        Kind.MEMBER_JOINED,
        "[GroupId {group}] Member {member} joins the consumer group using the {protocol} protocol.",
    ),
    says(Kind.MEMBER_EXPIRED, "Member {member} in group {group} has failed"),
    says(Kind.MEMBER_EXPIRED, "Member {member} in group {group} has failed, removing it from the group."),
    says(
        Kind.MEMBER_EXPIRED,
        "Pending member {member} in group {group} has been removed after session timeout expiration.",
        reason="it never joined with the id that it was given",
    ),
    says(Kind.MEMBER_LEFT, "Group {group} removed dynamic members who haven't joined: {late}", then=_late),
    says(
        Kind.MEMBER_LEFT,
        "[Group {group}] Pending member {member} has left group through explicit `LeaveGroup` request; "
        "client reason: {reason}",
    ),
    says(
        Kind.MEMBER_LEFT,
        "Member[{who}] in group {group} has left, removing it from the group",
        then=_left,
    ),
    says(Kind.MEMBER_LEFT, "Member {who} in group {group} has left, removing it from the group", then=_left),
    says(
        Kind.MEMBER_LEFT,
        "Member {who} has left group {group} through explicit `LeaveGroup` request",
        then=_left,
    ),
    says(
        Kind.MEMBER_LEFT,
        "Member {who} has left group {group} through explicit `LeaveGroup`; client reason: {reason}",
        then=_left,
    ),
    says(
        Kind.MEMBER_LEFT,
        "Member {who} has left group {group} through explicit `LeaveGroup` request; client reason: {reason}",
        then=_left,
    ),
    says(
        Kind.MEMBER_LEFT,
        "[Group {group}] Member {who} has left group through explicit `LeaveGroup` request; client reason: "
        "{reason}",
        then=_left,
    ),
    says(Kind.MEMBER_LEFT, "[GroupId {group}] Member {member} left the consumer group."),
    says(
        Kind.MEMBER_LEFT,
        "[GroupId {group}] Static member {member} with instance id {instance_id} temporarily left the "
        "consumer group.",
    ),
    says(
        Kind.MEMBER_FENCED,
        "[GroupId {group}] Member {member} fenced from the group because {reason}.",
        then=_fenced,
    ),
    says(
        Kind.MEMBER_FENCED,
        "[GroupId {group}] Request memberId={member} for static member with groupInstanceId={instance_id} is "
        "fenced by existing memberId={*}",
    ),
    says(
        Kind.MEMBER_FENCED,
        "Request memberId={member} for static member with groupInstanceId={instance_id} is fenced by current "
        "memberId={expected} during operation {operation}",
    ),
    says(
        Kind.MEMBER_FENCED,
        "Request memberId={member} for static member with groupInstanceId={instance_id} is fenced by "
        "existing memberId={expected} during operation {operation}",
    ),
    says(
        Kind.MEMBER_FENCED,
        "given member.id {member} is identified as a known static member {instance_id}, but not matching the "
        "expected member.id {expected} during {operation}, will respond with instance fenced error",
    ),
    says(
        Kind.MEMBER_FENCED,
        "given member.id {member} is identified as a known static member {instance_id}, but not matching the "
        "expected member.id {expected}",
    ),
    # Groups that end.
    says(Kind.GROUP_EMPTY, "Group {group} generation {generation} is dead and removed"),
    says(
        Kind.GROUP_EMPTY,
        "Group {group} with generation {generation} is now empty (__consumer_offsets-{p})",
    ),
    says(Kind.GROUP_EMPTY, "Group {group} with generation {generation} is now empty."),
    says(
        Kind.GROUP_REMOVED,
        "The following groups were deleted: {groups}. A total of {offsets} offsets were removed.",
        then=_deleted,
    ),
    says(
        Kind.GROUP_REMOVED,
        "Group {group} transitioned to Dead in generation {generation}",
        reason="expired",
    ),
    says(
        Kind.OFFSETS_EXPIRED,
        "Removed {offsets} expired offsets in {duration_ms} milliseconds.",
        then=_if_any("offsets"),
    ),
    says(
        Kind.OFFSETS_EXPIRED,
        "Removed {offsets} offsets associated with deleted partitions: {partitions}.",
        reason="topic deleted",
        then=_if_any("offsets"),
    ),
    says(
        Kind.OFFSETS_EXPIRED,
        "Generated {offsets} tombstone records while cleaning up group metadata in {duration_ms} "
        "milliseconds.",
        then=_if_any("offsets"),
    ),
    # Coordinators that come and go.
    says(Kind.COORDINATOR_LOADING, "Loading offsets and group metadata from {tp}"),
    says(Kind.COORDINATOR_LOADING, "Scheduling loading of offsets and group metadata from {tp}"),
    says(
        Kind.COORDINATOR_LOADING,
        "Scheduling loading of offsets and group metadata from {tp} for epoch {epoch}",
    ),
    says(
        Kind.COORDINATOR_LOADING,
        "Scheduling loading of metadata from {tp} with epoch {epoch}",
        then=_coordination,
    ),
    says(Kind.COORDINATOR_LOADED, "Finished loading offsets from {tp} in {duration_ms} milliseconds."),
    says(
        Kind.COORDINATOR_LOADED,
        "Finished loading offsets and group metadata from {tp} in {duration_ms} milliseconds.",
    ),
    says(
        Kind.COORDINATOR_LOADED,
        "Finished loading offsets and group metadata from {tp} in {duration_ms} milliseconds for epoch "
        "{epoch}, of which…",
    ),
    says(
        Kind.COORDINATOR_LOADED,
        "Finished loading offsets and group metadata from {tp} in {duration_ms} milliseconds, of which…",
    ),
    says(
        Kind.COORDINATOR_LOADED,
        "Finished loading of metadata from {tp} with epoch {epoch} in {duration_ms}ms where {*}. Loaded "
        "{records} records which total to {bytes} bytes.",
        then=_coordination,
    ),
    says(Kind.COORDINATOR_UNLOADED, "Removed {offsets} cached offsets for {tp} on follower transition."),
    says(
        Kind.COORDINATOR_UNLOADED,
        "Finished unloading {tp}. Removed {offsets} cached offsets and {groups} cached groups.",
    ),
    says(
        Kind.COORDINATOR_UNLOADED,
        "Finished unloading {tp} for coordinator epoch {epoch}. Removed {offsets} cached offsets and "
        "{groups} cached groups.",
    ),
    says(
        Kind.COORDINATOR_UNLOADED,
        "Finished unloading metadata for {tp} with epoch {epoch}.",
        then=_coordination,
    ),
    says(
        Kind.COORDINATOR_REFUSED,
        "Failed to load metadata from {tp} with epoch {epoch} due to {error}.",
        then=_coordination,
    ),
    says(Kind.COORDINATOR_REFUSED, "Error loading offsets from {tp}…"),
    says(Kind.COORDINATOR_REFUSED, "Error in loading offsets from {tp}…"),
    says(
        Kind.COORDINATOR_REFUSED,
        "Appending metadata message for group {group} generation {generation} failed due to {error}, "
        "returning {*}",
    ),
    says(
        Kind.COORDINATOR_REFUSED,
        "Appending metadata message for group {group} generation {generation} failed due to unexpected "
        "error: {error}",
    ),
    says(
        Kind.COORDINATOR_REFUSED,
        "Number of alive brokers '{alive}' does not meet the required replication factor "
        "'{replication_factor}' for the offsets topic…",
        error=38,
    ),
    says(
        Kind.COORDINATOR_REFUSED,
        "Auto topic creation failed for __consumer_offsets with error '{error}'…",
    ),
)
