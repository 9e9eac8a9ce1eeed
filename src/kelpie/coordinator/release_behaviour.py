"""What differs between releases of Kafka, in groups and offsets.

One field, one difference; the release in which it came is in its comment. 0.9.0.1 to 3.9 are the coordinator
in Scala (GroupCoordinator, GroupMetadataManager), 4.x is the one in Java (GroupMetadataManager,
OffsetMetadataManager), which became the default in 4.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.errors import ErrorCode

_SCALA_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_FIRST_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)
_GROUP_TOO_LARGE = dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR)
_COMMIT_TOO_LARGE = dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
_LATE = {ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS}
_JAVA_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    **_GROUP_TOO_LARGE,
}

Errors = Mapping[ErrorCode, ErrorCode]


@dataclass(frozen=True, slots=True)
class GroupBehaviour:
    """Defaults are those of Kafka 4.3."""

    release: str = "4.3"

    # What is written.
    group_value_version: int = 3
    offset_value_version: int = 4
    """4.1: a commit carries the topic's id. One that names a retention is written as version 1 ever since."""
    writes_new_groups: bool = True
    """4.0: a join that creates a group writes it down, as an empty one of generation 0."""
    tombstones_simple_groups: bool = True
    """4.0: the tombstone of a group is written even if its generation is 0, when no other record names it."""
    group_errors: Errors = field(default_factory=lambda: _JAVA_ERRORS)
    """The error for members when the group's record cannot be written. Other codes stay as they are."""
    commit_errors: Errors = field(
        default_factory=lambda: (
            _JAVA_ERRORS | {ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        )
    )

    # States and members.
    has_empty_state: bool = True
    """0.10.1. Before: a group dies with its last member."""
    completing_name: str = "CompletingRebalance"
    """1.0. Before: AwaitingSync."""
    dead_error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE
    """2.3. Before: UNKNOWN_MEMBER_ID."""
    refuses_empty_group_ids: bool = True
    """Before 1.1 only JoinGroup did; the others found no such group."""
    join_error_generation: int = -1
    """The generation in a JoinGroup error; 0 in 0.9."""
    initial_delay: bool = True
    """0.11 (KIP-134)."""
    delays_only_generation_0: bool = False
    """Scala: the delay is prolonged by new members only while the generation is 0."""
    expiry_ends_initial_delay: bool = True
    """4.0: if a session ends during the initial delay and all others have joined, the delay ends as well."""
    refusal_may_end_rebalance: bool = False
    """Scala: after every join, also a refused one, it is seen whether the rebalance can end."""
    new_members_expire: bool = True
    """2.1.1: a new member's parked join ends after five minutes."""
    pending_syncs_expire: bool = True
    """2.8.1 (KAFKA-12890)."""
    rejoin_changes_timeouts: bool = True
    """3.x: a known member's join may change its timeouts."""
    refuses_unknown_instances: bool = True
    """3.x: an instance id that the group does not know is UNKNOWN_MEMBER_ID, even of a known member."""
    state_before_member: bool = False
    """0.9: Heartbeat and OffsetCommit answer REBALANCE_IN_PROGRESS before they check the member."""
    sync_renews: frozenset[ClassicGroupState] = frozenset()
    """In which states a SyncGroup that is accepted renews the session."""
    leave_waits: bool = True
    """4.0: LeaveGroup is answered once the record of the emptied group is written."""
    logs_leaving_late: bool = False
    """3.x: the log names a member that left after the rebalance that follows."""
    describes_assignments: bool = True
    """4.0: DescribeGroups shows assignments also while the group is not Stable."""
    spells_states_exactly: bool = False
    """2.6 to 2.8: ListGroups finds no group in the state "stable", only in "Stable"."""

    # Offsets.
    simple_groups: bool = True
    """0.10.1: a commit without a member creates an Empty group. Before: offsets belong to no group."""
    commit_names_missing_group: bool = True
    """4.0: OffsetCommit v9 of a member to a missing group is GROUP_ID_NOT_FOUND, not ILLEGAL_GENERATION."""
    transaction_checks_what_is_given: bool = False
    """2.5 to 2.8: TxnOffsetCommit checks member and generation each only if it is given."""
    unreplicated_is_unstable: bool = False
    """Scala: RequireStable is UNSTABLE_OFFSET_COMMIT while a plain commit is being written. 4.0: it waits."""
    commit_sequence: int = -1
    """Scala, since 0.11: batches of offsets begin with sequence number 0, though no producer counts."""
    keeps_null_metadata: bool = False
    """0.9: an offset without metadata is answered without, until it is read from the log, which has ""."""
    every_offset_expires: bool = False
    """Before 2.1 (KIP-211): each offset expires on its own, also those of live groups."""
    group_goes_with_last_offset: bool = False
    """Scala: an Empty group is forgotten when its last offset is deleted. 4.0: at the next expiry."""


BEHAVIOUR_4_3 = GroupBehaviour()
BEHAVIOUR_3_9 = GroupBehaviour(
    release="3.9",
    offset_value_version=3,
    writes_new_groups=False,
    tombstones_simple_groups=False,
    group_errors=_SCALA_ERRORS | _LATE | _GROUP_TOO_LARGE,
    commit_errors=_SCALA_ERRORS | _COMMIT_TOO_LARGE,
    delays_only_generation_0=True,
    expiry_ends_initial_delay=False,
    refusal_may_end_rebalance=True,
    sync_renews=frozenset({ClassicGroupState.STABLE}),
    leave_waits=False,
    logs_leaving_late=True,
    describes_assignments=False,
    commit_names_missing_group=False,
    unreplicated_is_unstable=True,
    commit_sequence=0,
    group_goes_with_last_offset=True,
)
BEHAVIOUR_2_8 = replace(
    BEHAVIOUR_3_9,
    release="2.8",
    logs_leaving_late=False,
    rejoin_changes_timeouts=False,
    refuses_unknown_instances=False,
    spells_states_exactly=True,
    transaction_checks_what_is_given=True,
)
BEHAVIOUR_0_9 = replace(
    BEHAVIOUR_2_8,
    release="0.9.0.1",
    group_value_version=0,
    offset_value_version=1,
    group_errors=_FIRST_ERRORS | _LATE | _GROUP_TOO_LARGE,
    commit_errors=_FIRST_ERRORS | _COMMIT_TOO_LARGE,
    has_empty_state=False,
    completing_name="AwaitingSync",
    dead_error=ErrorCode.UNKNOWN_MEMBER_ID,
    refuses_empty_group_ids=False,
    join_error_generation=0,
    initial_delay=False,
    new_members_expire=False,
    pending_syncs_expire=False,
    state_before_member=True,
    sync_renews=frozenset({ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}),
    simple_groups=False,
    keeps_null_metadata=True,
    every_offset_expires=True,
)
