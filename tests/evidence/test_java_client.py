"""Every wording of the Java consumer from 1.0 to 4.x, as its sources have it."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import pytest

from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, in_log4j, told

NODE = "10.0.0.2:9092 (id: 2147483645 rack: null)"
NODE_4 = "10.0.0.2:9092 (id: 2147483645 rack: null isFenced: false)"
BRACKET = "[Consumer clientId=c1, groupId=g1] "
POSITION = (
    "FetchPosition{offset=42, offsetEpoch=Optional[7], "
    "currentLeader=LeaderAndEpoch{leader=Optional[10.0.0.2:9092 (id: 2 rack: null)], epoch=7}}"
)
POLL_ADVICE = (
    " This means the time between subsequent calls to poll() was longer than the configured "
    "max.poll.interval.ms, which typically implies that the poll loop is spending too much time processing "
    "messages. You can address this either by increasing max.poll.interval.ms or by reducing the maximum size "
    "of batches returned in poll() with max.poll.records."
)
OF_G1 = {"client_id": "c1", "group": "g1"}

# Since 1.0: group and client are in the bracket.
NEW = [
    (f"Discovered group coordinator {NODE}", Kind.COORDINATOR_FOUND, {"node": 2}),
    (f"Discovered group coordinator {NODE_4}", Kind.COORDINATOR_FOUND, {"node": 2}),
    (
        "Discovered group coordinator Coordinator(key='g1', nodeId=2, host='h', port=1, errorCode=0, "
        "errorMessage='')",
        Kind.COORDINATOR_FOUND,
        {"node": 2},
    ),
    (
        f"Group coordinator {NODE} is unavailable or invalid, will attempt rediscovery",
        Kind.COORDINATOR_LOST,
        {"node": 2},
    ),
    (
        f"Group coordinator {NODE} is unavailable or invalid due to cause: null.isDisconnected: true. "
        "Rediscovery will be attempted.",
        Kind.COORDINATOR_LOST,
        {"node": 2, "disconnected": "true"},
    ),
    (
        f"Group coordinator {NODE_4} is unavailable or invalid due to cause: coordinator unavailable. "
        "isDisconnected: false. Rediscovery will be attempted.",
        Kind.COORDINATOR_LOST,
        {"node": 2, "reason": "coordinator unavailable", "disconnected": "false"},
    ),
    (
        f"Group coordinator {NODE_4} is unavailable or invalid due to cause: null. Rediscovery will be attempted.",
        Kind.COORDINATOR_LOST,
        {"node": 2},
    ),
    ("Group coordinator lookup failed: ", Kind.LOOKUP_FAILED, {"error": 15}),
    (
        "Group coordinator lookup failed: The coordinator is not available.",
        Kind.LOOKUP_FAILED,
        {"error": 15, "reason": "The coordinator is not available."},
    ),
    (
        "Connection to node 2 could not be established. Broker may not be available.",
        Kind.CONNECTION_FAILED,
        {"node": 2},
    ),
    (
        "Connection to node -1 (/10.0.0.1:9092) could not be established. Node may not be available.",
        Kind.CONNECTION_FAILED,
        {"node": -1, "address": "/10.0.0.1:9092"},
    ),
    (
        "Connection to node 2 (h/10.0.0.1:9092) failed authentication due to: Authentication failed",
        Kind.NOT_AUTHORISED,
        {"node": 2, "address": "h/10.0.0.1:9092", "error": 58, "reason": "Authentication failed"},
    ),
    ("(Re-)joining group", Kind.JOINING, {}),
    ("Successfully joined group with generation 3", Kind.JOINED, {"generation": 3}),
    (
        "Successfully joined group with generation Generation{generationId=3, memberId='c1-aa', protocol='range'}",
        Kind.JOINED,
        {"generation": 3, "member": "c1-aa", "protocol": "range"},
    ),
    ("Attempt to heartbeat failed since group is rebalancing", Kind.HEARTBEAT_FAILED, {"error": 27}),
    (
        f"Attempt to heartbeat failed since coordinator {NODE} is either not started or not valid",
        Kind.HEARTBEAT_FAILED,
        {"node": 2, "error": 16},
    ),
    (
        "Attempt to heartbeat failed since generation 3 is not current",
        Kind.HEARTBEAT_FAILED,
        {"generation": 3, "error": 22},
    ),
    (
        "Attempt to heartbeat failed for since member id c1-aa is not valid.",
        Kind.HEARTBEAT_FAILED,
        {"member": "c1-aa", "error": 25},
    ),
    (
        "Attempt to heartbeat with Generation{generationId=3, memberId='c1-aa', protocol='range'} and group "
        "instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting generation",
        Kind.HEARTBEAT_FAILED,
        {
            "generation": 3,
            "member": "c1-aa",
            "error": 25,
            "reason": "UNKNOWN_MEMBER_ID",
            "instance": "Optional.empty",
        },
    ),
    ("Request joining group due to: group is already rebalancing", Kind.HEARTBEAT_FAILED, {"error": 27}),
    ("Revoke previously assigned partitions t-0, t-1", Kind.REVOKED, {"partitions": "t-0, t-1"}),
    ("Lost previously assigned partitions t-0", Kind.REVOKED, {"partitions": "t-0", "reason": "lost"}),
    ("Adding newly assigned partitions: t-0, t-1", Kind.ASSIGNED, {"partitions": "t-0, t-1"}),
    ("Found no committed offset for partition t-3", Kind.NO_COMMITTED_OFFSET, {"topic": "t", "partition": 3}),
    (
        f"Resetting offset for partition t-3 to position {POSITION}.",
        Kind.POSITION_RESET,
        {"topic": "t", "partition": 3, "offset": 42},
    ),
    (
        f"Fetch position {POSITION} is out of range for partition t-3, resetting offset",
        Kind.OUT_OF_RANGE,
        {"topic": "t", "partition": 3, "offset": 42, "error": 1},
    ),
    (
        f"Truncation detected for partition t-3 at offset {POSITION}, resetting offset to the first offset known "
        "to diverge FetchPosition{offset=40, offsetEpoch=Optional[6]}",
        Kind.TRUNCATION_DETECTED,
        {
            "topic": "t",
            "partition": 3,
            "offset": 42,
            "diverged_at": "FetchPosition{offset=40, offsetEpoch=Optional[6]}",
        },
    ),
    (
        f"Truncation detected for partition t-3 at offset {POSITION} (the end offset from the broker is 40), but "
        "no reset policy is set",
        Kind.TRUNCATION_DETECTED,
        {"topic": "t", "partition": 3, "offset": 42, "diverged_at": "40"},
    ),
    (
        "This member will leave the group because consumer poll timeout has expired." + POLL_ADVICE,
        Kind.POLL_INTERVAL_EXCEEDED,
        {},
    ),
    ("consumer poll timeout has expired." + POLL_ADVICE, Kind.POLL_INTERVAL_EXCEEDED, {}),
    ("Consumer poll timeout has expired." + POLL_ADVICE, Kind.POLL_INTERVAL_EXCEEDED, {}),
    (f"Sending LeaveGroup request to coordinator {NODE}", Kind.LEAVING, {"node": 2}),
    (
        f"Member c1-aa sending LeaveGroup request to coordinator {NODE}",
        Kind.LEAVING,
        {"member": "c1-aa", "node": 2},
    ),
    (
        f"Member c1-aa sending LeaveGroup request to coordinator {NODE_4} due to the consumer is being closed",
        Kind.LEAVING,
        {"member": "c1-aa", "node": 2, "reason": "the consumer is being closed"},
    ),
    (
        "Offset commit failed on partition t-3 at offset 42: The coordinator is loading and hence can't process "
        "requests.",
        Kind.COMMIT_FAILED,
        {
            "topic": "t",
            "partition": 3,
            "offset": 42,
            "error": 14,
            "reason": "The coordinator is loading and hence can't process requests.",
        },
    ),
    (
        "Asynchronous auto-commit of offsets {t-0=OffsetAndMetadata{offset=1, leaderEpoch=0, metadata=''}} failed "
        "due to retriable error: The coordinator is not available.",
        Kind.COMMIT_FAILED,
        {
            "offsets": "{t-0=OffsetAndMetadata{offset=1, leaderEpoch=0, metadata=''}}",
            "error": 15,
            "reason": "The coordinator is not available.",
        },
    ),
    (
        "Synchronous auto-commit of offsets {t-0=x} failed: Commit cannot be completed",
        Kind.COMMIT_FAILED,
        {"reason": "Commit cannot be completed"},
    ),
    ("Auto-commit of offsets {t-0=OffsetAndMetadata{offset=1}} failed", Kind.COMMIT_FAILED, {}),
    ("Heartbeat thread failed due to unexpected error", Kind.CLIENT_FAILED, {}),
    (
        "Member m-1 with epoch 3 transitioned to fatal state",
        Kind.CLIENT_FAILED,
        {"member": "m-1", "generation": 3},
    ),
    (
        "Failing OffsetCommit request since the consumer is not part of an active group",
        Kind.COMMIT_FAILED,
        {"error": 25},
    ),
    (
        "JoinGroup failed: The group instance id Optional[i1] has been fenced by another instance. Sent "
        "generation was Generation{generationId=3}",
        Kind.FENCED,
        {"instance_id": "i1", "error": 82},
    ),
    (
        "JoinGroup failed due to fatal error: The group member's supported protocols are incompatible with those "
        "of existing members or first group member tried to join with empty protocol type or empty protocol list.",
        Kind.PROTOCOL_REFUSED,
        {
            "error": 23,
            "reason": "The group member's supported protocols are incompatible with those of existing members or "
            "first group member tried to join with empty protocol type or empty protocol list.",
        },
    ),
    (
        "JoinGroup failed due to fatal error: The consumer group has reached its max size.",
        Kind.GROUP_FULL,
        {"error": 81, "reason": "The consumer group has reached its max size."},
    ),
    (
        "JoinGroup failed due to fatal error: The session timeout is not within the range allowed by the broker "
        "(as configured by group.min.session.timeout.ms and group.max.session.timeout.ms).",
        Kind.SESSION_TIMEOUT_REFUSED,
        {
            "error": 26,
            "reason": "The session timeout is not within the range allowed by the broker (as configured by "
            "group.min.session.timeout.ms and group.max.session.timeout.ms).",
        },
    ),
    (
        "Attempt to join group failed due to fatal error: The consumer group has reached its max size.",
        Kind.GROUP_FULL,
        {"error": 81, "reason": "The consumer group has reached its max size."},
    ),
    (
        "The following partitions still have unstable offsets which are not cleared on the broker side: [t-3], "
        "this could be either transactional offsets waiting for completion, or normal offsets waiting for "
        "replication after appending to local log",
        Kind.UNSTABLE_OFFSET,
        {"partitions": "[t-3]", "error": 88},
    ),
    (
        "Member m-1 with epoch 5 transitioned from UNSUBSCRIBED to JOINING.",
        Kind.JOINING,
        {"member": "m-1", "generation": 5, "from": "UNSUBSCRIBED", "to": "JOINING"},
    ),
    (
        "Member m-1 with epoch 6 transitioned from ACKNOWLEDGING to STABLE.",
        Kind.JOINED,
        {"member": "m-1", "generation": 6, "from": "ACKNOWLEDGING", "to": "STABLE"},
    ),
    (
        "Member m-1 with epoch 6 transitioned from STABLE to FENCED.",
        Kind.FENCED,
        {"member": "m-1", "generation": 6, "from": "STABLE", "to": "FENCED"},
    ),
]

SILENT = [
    "Resetting offset for partition t-3 to the committed offset 17",
    "Setting offset for partition t-3 to the committed offset 17",
    BRACKET + "Revoking previously assigned partitions []",
    BRACKET
    + "Successfully synced group in generation Generation{generationId=3, memberId='a', protocol='b'}",
    BRACKET + "Member m-1 with epoch 6 transitioned from JOINING to RECONCILING.",
    BRACKET + "Node 2 disconnected.",
    BRACKET + "Subscribed to topic(s): orders",
    "Some other program speaks of a group coordinator that is unavailable",
]


@pytest.mark.parametrize(("message", "kind", "expected"), NEW)
def test_what_consumers_since_1_0_write_is_understood(
    message: str, kind: Kind, expected: dict[str, object]
) -> None:
    """Group and client are in the bracket before the message."""
    (event,) = events_of(*in_log4j([BRACKET + message]))
    assert event.kind is kind
    assert told(event) == OF_G1 | expected


@pytest.mark.parametrize("line", SILENT)
def test_what_means_nothing_is_let_pass(line: str) -> None:
    """A committed offset that is used is no reset, and the revocation of nothing is none."""
    assert events_of(*in_log4j([line])) == []


def test_a_static_member_is_named_in_the_bracket() -> None:
    """Fencing is told by the instance, so it must be known."""
    (event,) = events_of(*in_log4j(["[Consumer instanceId=i1, clientId=c1, groupId=g1] (Re-)joining group"]))
    assert told(event) == OF_G1 | {"instance_id": "i1"}


@pytest.mark.parametrize("version", ["2.4 to 2.8", "3.x"])
def test_a_late_poll_is_told_once_whatever_the_release(version: str) -> None:
    """From 2.4 to 2.8 only the reason of leaving tells it; 3.x writes a line of its own before."""
    leave = f"{BRACKET}Member c1-aa sending LeaveGroup request to coordinator {NODE} due to "
    if version == "3.x":
        lines = [BRACKET + "consumer poll timeout has expired." + POLL_ADVICE]
        lines += [leave + "consumer poll timeout has expired."]
    else:
        lines = [leave + "consumer poll timeout has expired." + POLL_ADVICE]
    kinds = [event.kind for event in events_of(*in_log4j(lines))]
    assert kinds == [Kind.POLL_INTERVAL_EXCEEDED, Kind.LEAVING]


def test_a_session_that_timed_out_at_the_client_is_told_beside_the_lost_coordinator() -> None:
    """The client knows before the broker does."""
    message = (
        f"{BRACKET}Group coordinator {NODE} is unavailable or invalid due to cause: session timed out without "
        "receiving a heartbeat response.isDisconnected: false. Rediscovery will be attempted."
    )
    events = events_of(*in_log4j([message]))
    assert [event.kind for event in events] == [Kind.SESSION_LOST, Kind.COORDINATOR_LOST]


def test_the_exception_behind_a_line_tells_the_error() -> None:
    """KIP-848 consumers write "retriable exception" and put what it was into the next line."""
    (line,) = in_log4j([BRACKET + "FindCoordinator request failed due to retriable exception"])
    cause = (
        "org.apache.kafka.common.errors.CoordinatorNotAvailableException: The coordinator is not available."
    )
    (event,) = events_of(line, cause, "\tat some.Class.method(Class.java:1)")
    assert (event.kind, event.error) == (Kind.LOOKUP_FAILED, 15)
    assert event.text == f"{line}\n{cause}"


def test_a_reconciliation_tells_what_was_added() -> None:
    """KIP-848: an assignment is a message of several lines."""
    (head,) = in_log4j([BRACKET + "Reconciling assignment with local epoch 4"])
    head = head.removesuffix(" (org.apache.kafka.x.Y)")
    added = "\tAdded partitions (assigned - owned):       [payments-0, payments-1]"
    (event,) = events_of(head, "\tMember:    m-1", added, " (org.apache.kafka.x.Y)")
    assert event.kind is Kind.ASSIGNED
    assert told(event) == OF_G1 | {"partitions": "[payments-0, payments-1]"}


@pytest.mark.parametrize(
    ("exception", "kind", "error"),
    [
        ("GroupAuthorizationException: Not authorized to access group: g1", Kind.NOT_AUTHORISED, 30),
        ("TopicAuthorizationException: Not authorized to access topics: [t]", Kind.NOT_AUTHORISED, 29),
        ("InconsistentGroupProtocolException: The group member's supported…", Kind.PROTOCOL_REFUSED, 23),
        ("FencedInstanceIdException: The broker rejected this static consumer", Kind.FENCED, 82),
        ("GroupMaxSizeReachedException: The consumer group has reached its max size.", Kind.GROUP_FULL, 81),
    ],
)
def test_exceptions_in_an_applications_own_words_are_understood(
    exception: str, kind: Kind, error: int
) -> None:
    """Many clients say it by an exception only, and whoever catches it writes what they like."""
    event, *others = events_of(
        "2026-11-15 20:56:40,123 ERROR [worker-1] com.example.Orders - The sky is falling",
        f"org.apache.kafka.common.errors.{exception}",
        "\tat com.example.Orders.run(Orders.java:12)",
    )
    assert not others
    assert (event.kind, event.error) == (kind, error)
