"""What Sarama, franz-go, kafkajs, Spring Kafka and Kafka Streams write, in the layouts in which they write it."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

from typing import Any

import pytest

from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, told

Line = tuple[str, Kind, dict[str, Any]]

SARAMA: list[Line] = [
    (
        "[sarama] 2026/11/15 20:56:40 client/coordinator coordinator for consumergroup billing is #1 (10.0.0.1:9092)",
        Kind.COORDINATOR_FOUND,
        {"group": "billing", "node": 1, "address": "10.0.0.1:9092"},
    ),
    (
        "2026/11/15 20:56:40.123456 client/coordinator coordinator for consumer group billing is not available",
        Kind.LOOKUP_FAILED,
        {"group": "billing", "error": 15},
    ),
    (
        "[Sarama] 2026/11/15 20:56:40 client/coordinator coordinator for billing is not available",
        Kind.LOOKUP_FAILED,
        {"group": "billing", "error": 15},
    ),
    (
        "[sarama] 2026/11/15 20:56:40 client/coordinator request to broker kafka-1:9092 failed: write: broken pipe",
        Kind.LOOKUP_FAILED,
        {"broker": "kafka-1:9092", "reason": "write: broken pipe"},
    ),
    (
        "[sarama] 2026/11/15 20:56:40 Failed to connect to broker kafka-1:9092: dial tcp 10.0.0.1:9092: connect: connection refused",
        Kind.CONNECTION_FAILED,
        {"broker": "kafka-1:9092", "reason": "dial tcp 10.0.0.1:9092: connect: connection refused"},
    ),
    (
        "[sarama] 2026/11/15 20:56:40 consumergroup/session/sarama-8f2c/7 released",
        Kind.REVOKED,
        {"member": "sarama-8f2c", "generation": 7},
    ),
    (
        "[sarama] 2026/11/15 20:56:40 JoinGroup failed: group instance id pod-1 has been fenced",
        Kind.FENCED,
        {"instance_id": "pod-1", "error": 82},
    ),
    (
        "[sarama] 2026/11/15 20:56:40 kafka server: The provided member is not known in the current generation",
        Kind.HEARTBEAT_FAILED,
        {"error": 25, "reason": "The provided member is not known in the current generation"},
    ),
    (
        "2026/11/15 20:56:40 main.go:71: Error from consumer: kafka server: Request was for a consumer group that is not coordinated by this broker",
        Kind.LOOKUP_FAILED,
        {
            "error": 16,
            "reason": "Request was for a consumer group that is not coordinated by this broker",
        },
    ),
    (
        "[sarama] 2026/11/15 20:56:40 kafka server: The client is not authorized to access this group",
        Kind.NOT_AUTHORISED,
        {"error": 30, "reason": "The client is not authorized to access this group"},
    ),
    (
        "[sarama] 2026/11/15 20:56:40 consumer/orders/3 shutting down because kafka server: The requested offset is outside the range of offsets maintained by the server for the given topic/partition",
        Kind.OUT_OF_RANGE,
        {
            "topic": "orders",
            "partition": 3,
            "error": 1,
            "reason": "The requested offset is outside the range of offsets maintained by the server for the given topic/partition",
        },
    ),
    (
        "[sarama] 2026/11/15 20:56:40 kafka: error while consuming orders/3: kafka server: The provided generation id is not the current generation",
        Kind.COMMIT_FAILED,
        {
            "topic": "orders",
            "partition": 3,
            "error": 22,
            "reason": "The provided generation id is not the current generation",
        },
    ),
]

FRANZ_GO: list[Line] = [
    (
        "[INFO] joining group; group: billing",
        Kind.JOINING,
        {"group": "billing"},
    ),
    (
        "[20:56:40.123] [INFO] joined; group: billing, member_id: kgo-1, instance_id: <nil>, generation: 7, leader: false",
        Kind.JOINED,
        {"group": "billing", "member": "kgo-1", "generation": 7},
    ),
    (
        '{"time":"2026-11-15T20:56:40.770251832Z","level":"info","message":"joined, balancing group","group":"billing","member_id":"kgo-1","instance_id":{},"generation":687,"balance_protocol":"cooperative-sticky","leader":true}',
        Kind.JOINED,
        {"group": "billing", "member": "kgo-1", "generation": 687},
    ),
    (
        'time=2026-11-15T20:56:40.123Z level=INFO msg="heartbeat errored" group=billing err="UNKNOWN_MEMBER_ID: The coordinator is not aware of this member."',
        Kind.HEARTBEAT_FAILED,
        {
            "group": "billing",
            "error": 25,
            "reason": "UNKNOWN_MEMBER_ID: The coordinator is not aware of this member.",
        },
    ),
    (
        '{"level":"info","ts":1794776200.397773,"caller":"kgo.go:317","msg":"sync failed with RebalanceInProgress, rejoining","group":"billing"}',
        Kind.HEARTBEAT_FAILED,
        {"group": "billing", "error": 27},
    ),
    (
        "[WARN] join group failed; group: billing, err: GROUP_AUTHORIZATION_FAILED: Not authorized to access group: Group authorization failed.",
        Kind.NOT_AUTHORISED,
        {
            "group": "billing",
            "error": 30,
            "reason": "GROUP_AUTHORIZATION_FAILED: Not authorized to access group: Group authorization failed.",
        },
    ),
    (
        "[ERROR] join and sync loop errored; group: billing, err: COORDINATOR_NOT_AVAILABLE: The coordinator is not available., consecutive_errors: 3, backoff: 2s",
        Kind.LOOKUP_FAILED,
        {
            "group": "billing",
            "error": 15,
            "reason": "COORDINATOR_NOT_AVAILABLE: The coordinator is not available.",
        },
    ),
    (
        "[ERROR] default commit failed; group: billing, err: ILLEGAL_GENERATION: Specified group generation id is not valid.",
        Kind.COMMIT_FAILED,
        {
            "group": "billing",
            "error": 22,
            "reason": "ILLEGAL_GENERATION: Specified group generation id is not valid.",
        },
    ),
    (
        "[WARN] received OFFSET_OUT_OF_RANGE, resetting to the nearest offset; either you were consuming too slowly and the broker has deleted the segment you were in the middle of consuming, or the broker has lost data and has not yet transferred leadership; broker: 1, topic: orders, partition: 3, prior_offset: 41",
        Kind.OUT_OF_RANGE,
        {"topic": "orders", "partition": 3, "offset": 41, "error": 1},
    ),
    (
        "[WARN] unable to open connection to broker; addr: 10.0.0.2:9092, broker: 2, err: dial tcp 10.0.0.2:9092: connect: connection refused",
        Kind.CONNECTION_FAILED,
        {"node": 2, "reason": "dial tcp 10.0.0.2:9092: connect: connection refused"},
    ),
]

KAFKAJS: list[Line] = [
    (
        '{"level":"INFO","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[ConsumerGroup] Consumer has joined the group","groupId":"billing","memberId":"app-1","leaderId":"app-1","isLeader":true,"memberAssignment":{"orders":[0,1]},"groupProtocol":"RoundRobinAssigner","duration":3012}',
        Kind.JOINED,
        {"group": "billing", "member": "app-1"},
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Runner] The group is rebalancing, re-joining","groupId":"billing","memberId":"app-1","error":"The group is rebalancing, so a rejoin is needed","retryCount":0,"retryTime":261}',
        Kind.HEARTBEAT_FAILED,
        {
            "group": "billing",
            "member": "app-1",
            "error": 27,
            "reason": "The group is rebalancing, so a rejoin is needed",
        },
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Runner] The coordinator is not aware of this member, re-joining the group","groupId":"billing","memberId":"app-1","error":"The coordinator is not aware of this member","retryCount":0,"retryTime":261}',
        Kind.HEARTBEAT_FAILED,
        {
            "group": "billing",
            "member": "app-1",
            "error": 25,
            "reason": "The coordinator is not aware of this member",
        },
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Connection] Response Heartbeat(key: 12, version: 3)","broker":"kafka-1:9092","clientId":"app","error":"The coordinator is not aware of this member","correlationId":10,"size":10}',
        Kind.HEARTBEAT_FAILED,
        {"client_id": "app", "error": 25, "reason": "The coordinator is not aware of this member"},
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Connection] Response GroupCoordinator(key: 10, version: 2)","broker":"kafka-1:9092","clientId":"app","error":"The group coordinator is not available","correlationId":10,"size":10}',
        Kind.LOOKUP_FAILED,
        {"client_id": "app", "error": 15, "reason": "The group coordinator is not available"},
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Connection] Connection error: connect ECONNREFUSED 10.0.0.1:9092","broker":"kafka-1:9092","clientId":"app","stack":"Error: connect ECONNREFUSED"}',
        Kind.CONNECTION_FAILED,
        {
            "client_id": "app",
            "broker": "kafka-1:9092",
            "reason": "Connection error: connect ECONNREFUSED 10.0.0.1:9092",
        },
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[ConsumerGroup] Offset out of range, resetting to default offset","topic":"orders","partition":3,"groupId":"billing","memberId":"app-1"}',
        Kind.OUT_OF_RANGE,
        {"group": "billing", "member": "app-1", "topic": "orders", "partition": 3, "error": 1},
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Runner] Error when calling eachMessage","topic":"orders","partition":3,"offset":"41","stack":"SyntaxError: Unexpected token in JSON\\n    at parse (app.js:1)"}',
        Kind.RECORD_UNREADABLE,
        {
            "topic": "orders",
            "partition": 3,
            "offset": 41,
            "reason": "SyntaxError: Unexpected token in JSON",
        },
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Consumer] Crash: KafkaJSProtocolError: Not authorized to access group: Group authorization failed","groupId":"billing","stack":"KafkaJSProtocolError"}',
        Kind.NOT_AUTHORISED,
        {
            "group": "billing",
            "error": 30,
            "reason": "KafkaJSProtocolError: Not authorized to access group: Group authorization failed",
        },
    ),
    (
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Consumer] Crash: KafkaJSNonRetriableError: it broke","groupId":"billing","stack":"x"}',
        Kind.CLIENT_FAILED,
        {"group": "billing", "reason": "KafkaJSNonRetriableError: it broke"},
    ),
]

SPRING: list[Line] = [
    (
        "2026-11-15T20:56:40.123Z  INFO 1 --- [ntainer#0-0-C-1] o.s.k.l.KafkaMessageListenerContainer    : billing: partitions assigned: [orders-0, orders-1]",
        Kind.ASSIGNED,
        {"group": "billing", "partitions": "[orders-0, orders-1]"},
    ),
    (
        "2026-11-15T20:56:40.123Z  INFO 1 --- [ntainer#0-0-C-1] o.s.k.l.KafkaMessageListenerContainer    : billing: partitions lost: [orders-0]",
        Kind.REVOKED,
        {"group": "billing", "partitions": "[orders-0]", "reason": "lost"},
    ),
    (
        "2026-11-15T20:56:40.123Z  INFO 1 --- [ntainer#0-0-C-1] o.s.k.l.KafkaMessageListenerContainer    : billing: Consumer stopped",
        Kind.LEAVING,
        {"group": "billing"},
    ),
    (
        "2026-11-15T20:56:40.123Z ERROR 1 --- [ntainer#0-0-C-1] o.s.k.l.KafkaMessageListenerContainer    : Fatal consumer exception; stopping container",
        Kind.CLIENT_FAILED,
        {"reason": "Fatal consumer exception; stopping container"},
    ),
]

_UUID = "72da01fb-de90-4133-bcc4-d63e09f3f8eb"
STREAMS: list[Line] = [
    (
        f"2026-11-15 20:56:40.257 WARN 1 --- [-StreamThread-1] o.a.k.s.p.internals.StreamThread : stream-thread [billing-{_UUID}-StreamThread-1] Detected that the thread is being fenced. This implies that this thread missed a rebalance and dropped out of the consumer group. Will close out all assigned tasks and rejoin the consumer group.",
        Kind.REVOKED,
        {"group": "billing", "client_id": f"billing-{_UUID}-StreamThread-1", "reason": "lost"},
    ),
    (
        "[2026-11-15 20:56:40,123] ERROR stream-client [my-client] Encountered the following exception during processing and sent shutdown request for the entire application. (org.apache.kafka.streams.KafkaStreams)",
        Kind.CLIENT_FAILED,
        {
            "client_id": "my-client",
            "reason": "stream-client [my-client] Encountered the following exception during processing and sent shutdown request for the entire application.",
        },
    ),
]


@pytest.mark.parametrize(("line", "kind", "fields"), [*SARAMA, *FRANZ_GO, *KAFKAJS, *SPRING, *STREAMS])
def test_a_line_means(line: str, kind: Kind, fields: dict[str, Any]) -> None:
    """The texts are those of the clients' own sources; the layouts those of their loggers."""
    [event] = events_of(line)
    assert event.kind is kind
    expected = {
        **fields,
        **({"group_from": event.details["group_from"]} if "group_from" in event.details else {}),
    }
    assert told(event) == expected
    assert event.at is not None or line.startswith("[INFO]") or "[WARN]" in line or "[ERROR]" in line


@pytest.mark.parametrize(
    "line",
    [
        "2026/11/15 20:56:40 joined the party",
        "[INFO] joined; room: 12",
        "[INFO] heartbeat errored; group: billing, err: context canceled",
        '{"level":"DEBUG","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Connection] Response Heartbeat(key: 12, version: 3)","broker":"k:9092","clientId":"app","correlationId":1,"size":10}',
        '{"level":"ERROR","timestamp":"2026-11-15T20:56:40.900Z","logger":"kafkajs","message":"[Consumer] Crash: KafkaJSNumberOfRetriesExceeded: Connection error","groupId":"billing"}',
        "2026-11-15T20:56:40.123Z  INFO 1 --- [x] o.s.k.l.KafkaMessageListenerContainer : billing: partitions revoked: []",
        "[sarama] 2026/11/15 20:56:40 kafka server: The request timed out",
        'time=2026-11-15T20:56:40Z level=INFO msg="joined" user=ann',
    ],
)
def test_what_only_looks_like_it_means_nothing(line: str) -> None:
    """A consumer that leaves, a good answer, a crash that kafkajs recovers from, and words of other programs."""
    assert events_of(line) == []


def test_a_record_that_fails_in_a_topology_is_named_with_the_thread_that_it_ends() -> None:
    """Kafka Streams names the record in the exception, and its application in the thread."""
    failed, record = events_of(
        f"2026-11-15 20:56:40.694 ERROR 1 --- [-StreamThread-1] o.a.k.s.p.internals.StreamThread : stream-thread [billing-{_UUID}-StreamThread-1] Encountered the following exception during processing and the thread is going to shut down: ",
        "org.apache.kafka.streams.errors.StreamsException: Exception caught in process. taskId=1_5, processor=KSTREAM-SOURCE-0000000000, topic=orders, partition=5, offset=41, stacktrace=java.lang.RuntimeException: no",
        "\tat org.apache.kafka.streams.processor.internals.StreamTask.process(StreamTask.java:858)",
    )
    assert (failed.kind, failed.group) == (Kind.CLIENT_FAILED, "billing")
    assert record.kind is Kind.RECORD_UNREADABLE
    assert (record.group, record.topic, record.partition, record.offset) == ("billing", "orders", 5, 41)


def test_a_group_that_one_line_names_is_that_of_the_others() -> None:
    """kafkajs names the group in few lines; those of connections name the client only."""
    events = events_of(KAFKAJS[0][0], KAFKAJS[3][0])
    assert [event.group for event in events] == ["billing", "billing"]
