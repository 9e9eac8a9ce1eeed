"""Where the message begins and when it was written, whatever the program, the container and the zone."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

from zoneinfo import ZoneInfo

import pytest

from kelpie.evidence.logs import Float, read_log
from kelpie.evidence.logs.hints import Hints
from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of

MESSAGE = "[Consumer clientId=c, groupId=g] (Re-)joining group"
AT = 1794776200123
"""2026-11-15 20:56:40.123 UTC."""
WHOLE = AT - 123
CLASS = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
SHORT = "o.a.k.c.c.internals.ConsumerCoordinator"

LAYOUTS = [
    (f"[2026-11-15 20:56:40,123] INFO {MESSAGE} ({CLASS})", AT),
    (f"2026-11-15 20:56:40,123 INFO {MESSAGE} ({CLASS}) [kafka-coordinator-heartbeat-thread | g]", AT),
    (f"2026-11-15 20:56:40,123 INFO  [main] {CLASS} - {MESSAGE}", AT),
    (f"2026-11-15 20:56:40,123 [main] INFO  {CLASS} - {MESSAGE}", AT),
    (f"2026-11-15 20:56:40,123 [app] [kafka-coordinator-heartbeat-thread | g] INFO {SHORT} - {MESSAGE}", AT),
    (f"2026-11-15 20:56:40,123 INFO  {CLASS} [] - {MESSAGE}", AT),
    (f"2026-11-15 20:56:40 INFO  ConsumerCoordinator:333 - {MESSAGE}", WHOLE),
    (f"[2026-11-15 20:56:40,123] [INFO] [main] [{CLASS}] - {MESSAGE}", AT),
    (f"INFO  [2026-11-15 20:56:40,123] {CLASS}: {MESSAGE}", AT),
    (f"2026-11-15 20:56:40.123  INFO 4711 --- [ntainer#0-0-C-1] {SHORT}  : {MESSAGE}", AT),
    (f"2026-11-15T20:56:40.123Z  INFO 1 --- [orders] [ntainer#0-0-C-1] {SHORT} : {MESSAGE}", AT),
    (f"2026-11-15T21:56:40.123+01:00  INFO 1 --- [main] {SHORT} : {MESSAGE}", AT),
    (f"2026-11-15T15:56:40.123456-0500 INFO {CLASS} - {MESSAGE}", AT),
    (f"26/11/15 20:56:40 INFO ConsumerCoordinator: {MESSAGE}", WHOLE),
    (f"15 Nov 2026 20:56:40,123 [main] INFO  {SHORT} - {MESSAGE}", AT),
    (f"2026-11-15 20:56:40,123 - kafka.coordinator - INFO - {MESSAGE}", AT),
    (f"2026-11-15 20:56:40,123|INFO|main|{CLASS}|{MESSAGE}", AT),
    (f"INFO:{CLASS}:{MESSAGE}", None),
    (f"[main] INFO {CLASS} - {MESSAGE}", None),
    (MESSAGE, None),
    (
        '{"@timestamp":"2026-11-15T20:56:40.123Z","level":"INFO","logger_name":"x","message":"'
        + MESSAGE
        + '"}',
        AT,
    ),
    ('{"ts":1794776200.123,"severity":"info","msg":"' + MESSAGE + '"}', AT),
    ('{"time":1794776200123,"lvl":"INFO","log":"' + MESSAGE + '"}', AT),
]

WRAPPED = [
    (
        '{"log":"[2026-11-15 20:56:40,123] INFO '
        + MESSAGE
        + f" ({CLASS})"
        + '\\n","stream":"stdout","time":"2026-11-15T20:56:40.123456789Z"}',
        AT,
    ),
    (f"2026-11-15T20:56:40.123456789Z stdout F [2026-11-15 20:56:40,120] INFO {MESSAGE} ({CLASS})", AT),
    (f"2026-11-15T20:56:40.123456789Z stdout F {MESSAGE}", AT),
    (f"kafka-1  | [2026-11-15 20:56:40,123] INFO {MESSAGE} ({CLASS})", AT),
    (f"[pod/orders-7d9f/app] 2026-11-15 20:56:40,123 INFO {CLASS} - {MESSAGE}", AT),
    (f"2026-11-15T20:56:40.123+0000 host-1 orders[4711]: INFO {CLASS} - {MESSAGE}", AT),
    (f"<30>1 2026-11-15T20:56:40.123Z host-1 orders 4711 ID47 - INFO {CLASS} - {MESSAGE}", AT),
    (
        '{"__REALTIME_TIMESTAMP":"1794776200123456","MESSAGE":"'
        + f"INFO {CLASS} - {MESSAGE}"
        + '","_PID":"4711"}',
        AT,
    ),
    (f"2026-11-15T20:56:40.123456789Z INFO {CLASS} - {MESSAGE}", AT),
]


@pytest.mark.parametrize(("line", "at"), [*LAYOUTS, *WRAPPED])
def test_the_message_is_found_behind_every_usual_head(line: str, at: int | None) -> None:
    """Nobody changes the layout of their logs for a tool."""
    (event,) = events_of(line)
    assert (event.kind, event.group, event.at) == (Kind.JOINING, "g", at)
    assert (event.source, event.text) == ("app.log:1", line)


def test_lines_without_a_head_belong_to_the_line_before() -> None:
    """A stack trace is part of its event, also where each line is wrapped."""
    head = "[2026-11-15 20:56:40,123] DEBUG [Consumer clientId=c, groupId=g] Auto-commit of offsets {} failed (x.Y)"
    cause = "Caused by: org.apache.kafka.common.errors.NotCoordinatorException: This is not the correct coordinator."
    lines = [head, "java.lang.RuntimeException: oh", "\tat a.B.c(B.java:1)", cause]
    for wrap in ("{}", "2026-11-15T20:56:40.123456789Z stderr F {}", "kafka-1  | {}"):
        (event,) = events_of(*(wrap.format(line) for line in lines))
        assert (event.kind, event.error) == (Kind.COMMIT_FAILED, 16)


def test_lines_that_nobody_knows_are_passed_over_and_counted() -> None:
    """A log is mostly about something else."""
    other = f"[2026-11-15 20:56:40,123] INFO Order 17 was shipped ({CLASS})"
    reading = read_log(
        [other, "\tin a hurry", f"[2026-11-15 20:56:40,123] INFO {MESSAGE} ({CLASS})", other], "a.log"
    )
    assert (reading.lines, reading.heads, reading.unknown, len(reading.observations.events)) == (4, 3, 2, 1)


def test_two_layouts_may_take_turns_in_one_file() -> None:
    """librdkafka writes past the logging of the application that it is in."""
    events = events_of(
        '%7|1794776200.123|LEAVE|a#consumer-1| [thrd:main]: Group "g": leave (in state up)',
        "2026-11-15 20:56:41,000 INFO app revoked ['orders-0']",
        '%7|1794776202.000|LEAVE|a#consumer-1| [thrd:main]: Group "g": leave (in state up)',
    )
    assert [(event.at, event.source) for event in events] == [(AT, "app.log:1"), (1794776202000, "app.log:3")]


def test_times_without_a_zone_are_utc_unless_told_otherwise() -> None:
    """Most servers run on UTC; the others need a word, and summer time is known then."""
    line = f"[2026-07-15 20:56:40,123] INFO {MESSAGE} ({CLASS})"
    (utc,) = read_log([line], "a.log").observations.events
    (vienna,) = read_log([line], "a.log", Hints(ZoneInfo("Europe/Vienna"))).observations.events
    assert utc.at is not None
    assert vienna.at is not None
    assert utc.at - vienna.at == 2 * 3600 * 1000


@pytest.mark.parametrize("time", ["15 21:56:40", "15 20:56:40", "15 12:56:40", "16 02:26:40"])
def test_a_log_betrays_its_zone_by_the_moments_in_its_messages(time: str) -> None:
    """Java clients print startTimeMs when they start; that is worth more than an assumption."""
    lines = [
        f"[2026-11-{time},200] INFO Kafka startTimeMs: {AT} (org.apache.kafka.common.utils.AppInfoParser)",
        f"[2026-11-{time},623] INFO {MESSAGE} ({CLASS})",
    ]
    (event,) = events_of(*lines)
    assert event.at == AT + 500


def test_a_time_of_day_gets_its_date_from_a_moment_in_a_message() -> None:
    """The pattern of Kafka 0.9's console tools has no date; its DEBUG lines have moments."""
    lines = [
        "20:56:40.623 TKD [main] DEBUG AbstractCoordinator - (Re-)joining group billing-0",
        f"20:56:41.123 TKD [main] DEBUG NetworkClient - Sending metadata request (createdTimeMs={AT + 1000})",
    ]
    reading = read_log(lines, "a.log")
    assert reading.missing is Float.FIXED
    assert [event.at for event in reading.observations.events] == [AT + 500]


def test_a_time_of_day_that_goes_back_is_of_the_next_day() -> None:
    """A log runs through midnight."""
    lines = [
        f"{time} [main] INFO x.Y - {MESSAGE}" for time in ("23:59:59,900", "00:00:00,100", "00:00:00,200")
    ]
    reading = read_log(lines, "a.log")
    assert reading.missing is Float.DATE
    first, second, third = (event.at or 0 for event in reading.observations.events)
    assert (second - first, third - second) == (200, 100)


@pytest.mark.parametrize("time", ["2026-13-45 20:56:40,123", "2026-02-30 20:56:40,123", "99:99:99,999"])
def test_a_time_that_no_calendar_has_costs_the_time_only(time: str) -> None:
    """The line says what it says."""
    (event,) = events_of(f"[{time}] INFO {MESSAGE} ({CLASS})")
    assert (event.kind, event.at) == (Kind.JOINING, None)
