"""What kafka-python writes: 2.0, and 3.x where the words changed."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import pytest

from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, told

LINES = [
    (
        "INFO kafka.coordinator Discovered coordinator 2 for group g",
        Kind.COORDINATOR_FOUND,
        {"group": "g", "node": 2},
    ),
    (
        "INFO kafka.coordinator Discovered coordinator coordinator-2 for group g",
        Kind.COORDINATOR_FOUND,
        {"group": "g", "node": 2},
    ),
    (
        "WARNING kafka.coordinator Marking the coordinator dead (node coordinator-2) for group g: Node Disconnected.",
        Kind.COORDINATOR_LOST,
        {"group": "g", "node": 2, "reason": "Node Disconnected"},
    ),
    ("DEBUG kafka.coordinator Group Coordinator Not Available; retry", Kind.LOOKUP_FAILED, {"error": 15}),
    ("INFO kafka.coordinator (Re-)joining group g", Kind.JOINING, {"group": "g"}),
    (
        "INFO kafka.coordinator Successfully joined group g with generation 3",
        Kind.JOINED,
        {"group": "g", "generation": 3},
    ),
    (
        "INFO kafka.coordinator Successfully joined group g <Generation 3 (member_id: m-1, protocol: range)>",
        Kind.JOINED,
        {"group": "g", "generation": 3, "member": "m-1", "protocol": "range"},
    ),
    (
        "INFO kafka.coordinator.consumer Setting newly assigned partitions {TopicPartition(topic='t', partition=0)} for group g",
        Kind.ASSIGNED,
        {"group": "g", "partitions": "{TopicPartition(topic='t', partition=0)}"},
    ),
    (
        "INFO kafka.coordinator.consumer Revoking previously assigned partitions {TopicPartition(topic='t', partition=0)} for group g",
        Kind.REVOKED,
        {"group": "g", "partitions": "{TopicPartition(topic='t', partition=0)}"},
    ),
    (
        "WARNING kafka.coordinator Heartbeat failed for group g because it is rebalancing",
        Kind.HEARTBEAT_FAILED,
        {"group": "g", "error": 27},
    ),
    ("WARNING kafka.coordinator Heartbeat session expired, marking coordinator dead", Kind.SESSION_LOST, {}),
    ("WARNING kafka.coordinator Heartbeat poll expired, leaving group", Kind.POLL_INTERVAL_EXCEEDED, {}),
    (
        "ERROR kafka.coordinator.heartbeat Heartbeat failed for group g due to fenced id error: one",
        Kind.FENCED,
        {"group": "g", "instance_id": "one", "error": 82},
    ),
    (
        "ERROR kafka.coordinator Heartbeat thread for group g failed due to unexpected error: cannot join",
        Kind.CLIENT_FAILED,
        {"group": "g", "reason": "cannot join"},
    ),
    (
        "ERROR kafka.coordinator.heartbeat Unhandled Heartbeat loop error: it broke",
        Kind.CLIENT_FAILED,
        {"reason": "it broke"},
    ),
    (
        "WARNING kafka.coordinator Consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer",
        Kind.POLL_INTERVAL_EXCEEDED,
        {},
    ),
    ("INFO kafka.coordinator Leaving consumer group (g).", Kind.LEAVING, {"group": "g"}),
    (
        "INFO kafka.coordinator Leaving consumer group g (member m-1).",
        Kind.LEAVING,
        {"group": "g", "member": "m-1"},
    ),
    (
        "INFO kafka.consumer.fetcher Fetch offset 17 is out of range for topic-partition TopicPartition(topic='my-t', partition=3)",
        Kind.OUT_OF_RANGE,
        {"topic": "my-t", "partition": 3, "offset": 17, "error": 1},
    ),
    (
        "INFO kafka.consumer.fetcher Resetting offset for partition TopicPartition(topic='my-t', partition=3) to offset 0.",
        Kind.POSITION_RESET,
        {"topic": "my-t", "partition": 3, "offset": 0},
    ),
    (
        "DEBUG kafka.coordinator.consumer Group g has no committed offset for partition TopicPartition(topic='t', partition=3)",
        Kind.NO_COMMITTED_OFFSET,
        {"group": "g", "topic": "t", "partition": 3},
    ),
    (
        "ERROR kafka.coordinator Error sending OffsetCommitRequest to node coordinator-2 [KafkaConnectionError: 111 ECONNREFUSED]",
        Kind.COMMIT_FAILED,
        {"node": 2, "reason": "KafkaConnectionError: 111 ECONNREFUSED", "request": "OffsetCommitRequest"},
    ),
    (
        "ERROR kafka.net.connection <KafkaConnection node_id=coordinator-2 broker_version=(4, 3) (disconnected)>: Connection lost: KafkaConnectionError: 111 ECONNREFUSED",
        Kind.CONNECTION_FAILED,
        {"node": 2, "reason": "KafkaConnectionError: 111 ECONNREFUSED"},
    ),
]


@pytest.mark.parametrize(("line", "kind", "expected"), LINES)
def test_lines_of_kafka_python_are_understood(line: str, kind: Kind, expected: dict[str, object]) -> None:
    """Half of them are the Java consumer's of 0.10, word for word; the others are its own."""
    (event,) = events_of(f"2026-11-15 20:56:55,316 {line}")
    assert event.kind is kind
    assert told(event) == expected


def test_the_group_is_known_from_any_line_that_names_it() -> None:
    """In an outage nearly all lines are "Group Coordinator Not Available; retry"."""
    events = events_of(
        "2026-11-15 20:58:43,803 DEBUG kafka.coordinator Sending group coordinator request for group g to broker 2",
        "2026-11-15 20:58:43,804 DEBUG kafka.coordinator Group Coordinator Not Available; retry",
    )
    assert [(event.group, event.details["group_from"]) for event in events] == [("g", "app.log:1")]
