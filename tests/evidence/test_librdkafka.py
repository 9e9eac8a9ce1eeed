"""What librdkafka writes, with and without debug=cgrp,consumer."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import pytest

from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, told

HEAD = "%7|1794776208.861|{tag}|app1#consumer-1| [thrd:main]: "
OF_APP = {"client_id": "app1", "instance": "app1#consumer-1"}

LINES = [
    (
        "MAXPOLL",
        "Application maximum poll interval (8000ms) exceeded by 199ms (adjust max.poll.interval.ms for long-running "
        "message processing): leaving group",
        Kind.POLL_INTERVAL_EXCEEDED,
        {"limit_ms": "8000", "over_ms": "199", "pause_ms": "8199"},
    ),
    (
        "SESSTMOUT",
        "Consumer group session timed out (in join-state steady) after 6004 ms without a successful response from the "
        "group coordinator (broker 2, last error was Success): revoking assignment and rejoining group",
        Kind.SESSION_LOST,
        {"state": "steady", "silence_ms": "6004", "node": 2, "reason": "Success"},
    ),
    (
        "CGRPCOORD",
        '127.0.0.1:21101/1: Group "g" FindCoordinator response error: COORDINATOR_NOT_AVAILABLE: The coordinator is '
        "not available.",
        Kind.LOOKUP_FAILED,
        {
            "group": "g",
            "error": 15,
            "reason": "COORDINATOR_NOT_AVAILABLE: The coordinator is not available.",
            "broker": "127.0.0.1:21101/1",
        },
    ),
    (
        "CGRPCOORD",
        '127.0.0.1:21103/3: Group "g" coordinator is 127.0.0.1:21102 id 2',
        Kind.COORDINATOR_FOUND,
        {"group": "g", "node": 2, "broker": "127.0.0.1:21103/3", "address": "127.0.0.1:21102"},
    ),
    (
        "COORD",
        'Group "g": marking the coordinator (2) dead: Local: Broker transport failure: 127.0.0.1:21102/2: Disconnected',
        Kind.COORDINATOR_LOST,
        {
            "group": "g",
            "node": 2,
            "reason": "Local: Broker transport failure: 127.0.0.1:21102/2: Disconnected",
        },
    ),
    (
        "JOIN",
        '127.0.0.1:21102/2: Joining group "g" with 1 subscribed topic(s) and member id "m-1"',
        Kind.JOINING,
        {"group": "g", "member": "m-1", "broker": "127.0.0.1:21102/2"},
    ),
    (
        "JOINGROUP",
        "JoinGroup response: GenerationId 3, Protocol range, LeaderId m-1 (me), my MemberId m-1, member metadata count "
        "2: (no error)",
        Kind.JOINED,
        {"generation": 3, "member": "m-1", "protocol": "range", "leader": "m-1 (me)", "members": "2"},
    ),
    (
        "JOINGROUP",
        "JoinGroup response: GenerationId -1, Protocol , LeaderId , my MemberId m-1, member metadata count 0: Broker: "
        "Inconsistent group protocol",
        Kind.PROTOCOL_REFUSED,
        {
            "generation": -1,
            "member": "m-1",
            "members": "0",
            "error": 23,
            "reason": "Broker: Inconsistent group protocol",
        },
    ),
    (
        "ASSIGN",
        'Group "g": new assignment of 6 partition(s) in join-state wait-assign-call',
        Kind.ASSIGNED,
        {"group": "g", "partitions": "6"},
    ),
    (
        "CGRPJOINSTATE",
        'Group "g" changed join state wait-unassign-call -> wait-unassign-to-complete (state up)',
        Kind.REVOKED,
        {"group": "g"},
    ),
    ("LEAVE", 'Group "g": leave (in state up)', Kind.LEAVING, {"group": "g", "state": "up"}),
    (
        "HEARTBEAT",
        'Group "g" heartbeat error response in state up (join-state steady, 3 partition(s) assigned): Broker: Group '
        "rebalance in progress",
        Kind.HEARTBEAT_FAILED,
        {"group": "g", "error": 27, "reason": "Broker: Group rebalance in progress"},
    ),
    (
        "COMMIT",
        "GroupCoordinator/2: OffsetCommit for 6 partition(s) in join-state steady: cgrp auto commit timer: returned: "
        "Broker: Not coordinator",
        Kind.COMMIT_FAILED,
        {"broker": "GroupCoordinator/2", "error": 16, "reason": "Broker: Not coordinator"},
    ),
    (
        "FAIL",
        "127.0.0.1:21102/2: Connect to ipv4#127.0.0.1:21102 failed: Connection refused (after 0ms in state CONNECT)",
        Kind.CONNECTION_FAILED,
        {
            "node": 2,
            "broker": "127.0.0.1:21102/2",
            "address": "ipv4#127.0.0.1:21102",
            "reason": "Connection refused (after 0ms in state CONNECT)",
        },
    ),
    (
        "FATAL",
        "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id",
        Kind.FENCED,
        {
            "error": 82,
            "reason": "Broker: Static consumer fenced by other consumer with same group.instance.id",
        },
    ),
    (
        "FATAL",
        "Fatal error: Local: Fatal error: it cannot go on",
        Kind.CLIENT_FAILED,
        {"reason": "Local: Fatal error: it cannot go on"},
    ),
]

SILENT = [
    (
        "COMMIT",
        "GroupCoordinator/2: OffsetCommit for 6 partition(s) in join-state steady: x: returned: Success",
    ),
    (
        "CGRPCOORD",
        '127.0.0.1:21102/bootstrap: Group "g" FindCoordinator response error: _DESTROY_BROKER: Local: Broker handle '
        "destroyed without termination",
    ),
    (
        "JOINGROUP",
        "JoinGroup response: GenerationId -1, Protocol , LeaderId , my MemberId m-1, member metadata count 0: Broker: "
        "Group member needs a valid member ID",
    ),
    ("HEARTBEAT", 'GroupCoordinator/2: Heartbeat for group "g" generation id 3'),
    ("NEVERSEEN", "something that a newer release says"),
]


@pytest.mark.parametrize(("tag", "message", "kind", "expected"), LINES)
def test_lines_of_librdkafka_are_understood(
    tag: str, message: str, kind: Kind, expected: dict[str, object]
) -> None:
    """Most consumers outside Java are made of it."""
    (event,) = events_of(HEAD.format(tag=tag) + message)
    assert event.kind is kind
    assert told(event) == OF_APP | expected
    assert event.at == 1794776208861


def test_an_offset_reset_tells_its_cause() -> None:
    """Without a commit and out of range are two different troubles."""
    head = HEAD.format(tag="OFFSET")
    missing = "orders [3]: offset reset (at offset INVALID, broker 2) to BEGINNING: no previously committed offset available: Local: No offset stored"
    beyond = "orders [3]: offset reset (at offset 900 (leader epoch 1), broker 2) to cached BEGINNING offset 100: fetch failed due to requested offset not available on the broker: Broker: Offset out of range"
    first = [(event.kind, event.topic, event.partition) for event in events_of(head + missing)]
    assert first == [(Kind.NO_COMMITTED_OFFSET, "orders", 3), (Kind.POSITION_RESET, "orders", 3)]
    second = [(event.kind, event.error) for event in events_of(head + beyond)]
    assert second == [(Kind.OUT_OF_RANGE, 1), (Kind.POSITION_RESET, 1)]


@pytest.mark.parametrize(("tag", "message"), SILENT)
def test_what_means_nothing_is_let_pass(tag: str, message: str) -> None:
    """A commit that went well, a first join that is told its member id, a tag nobody knows."""
    assert events_of(HEAD.format(tag=tag) + message) == []


def test_a_line_without_group_gets_it_from_other_lines_of_the_same_instance() -> None:
    """MAXPOLL names nobody; two consumers in one process write into one log."""
    lines = [
        '%7|1794776208.861|LEAVE|a#consumer-1| [thrd:main]: Group "one": leave (in state up)',
        '%7|1794776208.861|LEAVE|b#consumer-2| [thrd:main]: Group "two": leave (in state up)',
        "%4|1794776209.000|MAXPOLL|b#consumer-2| [thrd:main]: Application maximum poll interval (8000ms) exceeded by 199ms (adjust max.poll.interval.ms for long-running message processing): leaving group",
    ]
    late = events_of(*lines)[-1]
    assert late.group == "two"
    assert late.details["group_from"] == "other lines of b#consumer-2"


@pytest.mark.parametrize(
    "head",
    [
        "2026-11-15 20:56:48,861 WARNING ",
        "2026-11-15 20:56:48,861 WARNING shop.orders: ",
        "2026-11-15 20:56:48,861 WARNING shop-1: ",
        "2026-11-15 20:56:48,861 WARNING shop ",
        "2026-11-15 20:56:48,861 - shop.orders - WARNING - ",
        "WARNING:shop.orders:",
    ],
)
def test_lines_that_went_through_a_logger_of_python_are_understood(head: str) -> None:
    """`Consumer(…, logger=…)` is how applications get them into their log: tag and instance stand in the message."""
    lines = [
        f'{head}LEAVE [a#consumer-1] [thrd:main]: Group "one": leave (in state up)',
        f"{head}MAXPOLL [a#consumer-1] [thrd:main]: Application maximum poll interval (8000ms) exceeded by 199ms "
        "(adjust max.poll.interval.ms for long-running message processing): leaving group",
    ]
    late = events_of(*lines)[-1]
    assert (late.kind, late.group) == (Kind.POLL_INTERVAL_EXCEEDED, "one")
    assert (late.details["instance"], late.details["pause_ms"]) == ("a#consumer-1", "8199")
