"""Which lines count: those that a client wrote, and not those in which somebody quotes one."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import json
import re

import pytest

from kelpie.guard.sightings import LogWatch, OwnNames, Sighting
from kelpie.observations import EventKind as Kind
from tests.evidence import truth, unpacked

ID = "orders_app-01-1794780689638-2187e03d"
WATCHER = f"[2026-11-15 22:11:40,090] ERROR [{ID}], error during syncedRebalance (kafka.consumer.ZookeeperConsumerConnector)"
FAILED = f"kafka.common.ConsumerRebalanceFailedException: {ID} can't rebalance after 2 retries"
FRAME = "\tat kafka.consumer.ZookeeperConsumerConnector$ZKRebalancerListener.syncedRebalance(ZookeeperConsumerConnector.scala:633)"
REGISTERING = f"[2026-11-15 22:11:29,900] INFO [{ID}], begin registering consumer {ID} in ZK (kafka.consumer.ZookeeperConsumerConnector)"
NEXT = "[2026-11-15 22:12:31,984] INFO x (kafka.utils.Y)"


def sightings(*lines: str) -> list[Sighting]:
    watch = LogWatch()
    return [sighting for line in lines for sighting in watch.line(line)]


def kinds(*lines: str) -> list[Kind | None]:
    return [sighting.kind for sighting in sightings(*lines)]


def test_every_failure_of_the_recorded_consumers_is_seen_in_its_form_and_nothing_else() -> None:
    """Real Kafka 0.8.2.2: nine groups, whose truth names seven exceptions with their forms."""
    recording = "kafka-0.8.2.2-rebalance-failure"
    seen = []
    for log in sorted((unpacked(recording)).glob("**/consumers/*.log")):
        watch = LogWatch()
        for line in log.read_text().splitlines():
            seen += [(sighting.kind, sighting.form) for sighting in watch.line(line)]
    told = " ".join(file.read_text() for file in truth(recording).rglob("*") if file.is_file())
    forms = re.findall(r"\d\d:\d\d:\d\d,\d{3} \((watcher|start-up|new session)\)", told)
    assert len(forms) == 7
    assert sorted(seen) == sorted((Kind.REBALANCE_FAILED, form) for form in forms)


@pytest.mark.parametrize(
    ("before", "form"),
    [
        (WATCHER, "watcher"),
        ("[2026-11-15 22:11:44,178] ERROR Error processing message, stopping consumer:  (kafka.tools.ConsoleConsumer$)", "start-up"),
        ("22:11:44.178 [main] ERROR com.acme.Main - cannot consume", "start-up"),
        ("[2026-11-15 22:13:01,698] ERROR Error handling event ZkEvent[New session event sent to kafka.consumer.ZookeeperConsumerConnector$ZKSessionExpireListener@31df9214] (org.I0Itec.zkclient.ZkEventThread)", "new session"),
    ],
)  # fmt: skip
def test_the_three_forms_of_the_failure_are_told_apart(before: str, form: str) -> None:
    """The thread decides what becomes of it: only at start-up the application hears of it."""
    (sighting,) = sightings(before, FAILED, FRAME)
    assert (sighting.kind, sighting.form) == (Kind.REBALANCE_FAILED, form)
    assert sighting.text == f"{before} | {FAILED}"


def test_an_uncaught_failure_is_seen_without_a_log() -> None:
    """The main thread ends with it; other threads keep the process alive."""
    line = f'Exception in thread "main" {FAILED}'
    assert kinds(line, FRAME) == [Kind.REBALANCE_FAILED]
    assert kinds(NEXT, line, FRAME) == [Kind.REBALANCE_FAILED]


def test_a_failure_within_another_exception_is_seen() -> None:
    """Applications wrap what they catch."""
    assert kinds(
        "[2026-11-15 22:11:44,178] ERROR Start failed (app.Main)",
        "java.lang.RuntimeException: start failed",
        "\tat app.Main.main(Main.java:18)",
        f"Caused by: {FAILED}",
        FRAME,
    ) == [Kind.REBALANCE_FAILED]


def test_a_failure_in_a_log_of_json_is_seen() -> None:
    """The stack trace is a field of the same line."""
    fields = {
        "@timestamp": "2026-11-15T22:11:40.090Z",
        "level": "ERROR",
        "logger_name": "kafka.consumer.ZookeeperConsumerConnector",
        "message": f"[{ID}], error during syncedRebalance",
        "stack_trace": f"{FAILED}\n{FRAME}\n",
    }
    (sighting,) = sightings(json.dumps(fields))
    assert (sighting.kind, sighting.form) == (Kind.REBALANCE_FAILED, "watcher")


@pytest.mark.parametrize(
    "lines",
    [
        (f"record: {FAILED}",),
        (FAILED, FRAME),
        (NEXT, FAILED, FRAME),
        (f"[2026-11-15 22:11:40,090] INFO got {WATCHER} {FAILED} (app.Main)", FRAME),
        (f"[2026-11-15 22:11:40,090] ERROR bad record {FAILED} (app.Main)",),
        (f"[2026-11-15 22:11:40,090] ERROR bad record {FAILED} (app.Main)", FRAME),
        (WATCHER,),
        (WATCHER, "org.I0Itec.zkclient.exception.ZkNoNodeException: x", FRAME),
        (WATCHER, FAILED, "next record"),
        (WATCHER, f"> {FAILED}", FRAME),
        (WATCHER, NEXT, FAILED, FRAME),
        (WATCHER.replace("ERROR", "INFO"), FAILED, FRAME),
        (json.dumps({"payload": f"{WATCHER}\n{FAILED}\n{FRAME}"}),),
        (f"{WATCHER}\\n{FAILED}\\n{FRAME}",),
    ],
)
def test_a_failure_that_is_only_quoted_is_not_seen(lines: tuple[str, ...]) -> None:
    """Records hold logs of other consumers: a quotation must not restart a healthy one."""
    assert kinds(*lines) == []


def test_the_failure_of_another_consumer_is_not_that_of_this_process() -> None:
    """Merged streams: records that are whole logs of other members pass for lines, but for the consumer's id."""
    names = OwnNames()
    stderr, merged = LogWatch(names=names), LogWatch(names=names)
    stderr.line(REGISTERING)
    other = "orders_app-02-1794780689999-00000000"
    for line in (WATCHER, FAILED, FRAME):
        assert merged.line(line.replace(ID, other)) == []
    assert [len(merged.line(line)) for line in (WATCHER, FAILED, FRAME)] == [0, 0, 1]


JAVA = "[2026-11-16 01:00:00,000] WARN [Consumer clientId=c, groupId=g] {} (org.apache.kafka.clients.consumer.internals.AbstractCoordinator)"
POLL = "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (JAVA.format(POLL), Kind.POLL_INTERVAL_EXCEEDED),
        (f"01:00:00.000 [heartbeat] WARN  o.a.k.c.c.i.ConsumerCoordinator - [Consumer clientId=c, groupId=g] {POLL}", Kind.POLL_INTERVAL_EXCEEDED),
        (f"2026-11-16 01:00:00 WARN [Consumer clientId=c, groupId=g] {POLL}", Kind.POLL_INTERVAL_EXCEEDED),
        (f"26/11/16 01:00:00 WARN ConsumerCoordinator: [Consumer clientId=c, groupId=g] {POLL}", Kind.POLL_INTERVAL_EXCEEDED),
        ("WARNING:kafka.coordinator:Heartbeat poll expired, leaving group", Kind.POLL_INTERVAL_EXCEEDED),
        ("%4|1794793788.619|MAXPOLL|app#consumer-1| [thrd:main]: Application maximum poll interval (8000ms) exceeded by 199ms (adjust max.poll.interval.ms for long-running message processing): leaving group", Kind.POLL_INTERVAL_EXCEEDED),
        (JAVA.format("Group coordinator lookup failed: The coordinator is not available."), Kind.LOOKUP_FAILED),
        (JAVA.format("Heartbeat thread failed due to unexpected error"), Kind.CLIENT_FAILED),
        (JAVA.format("Member m-1 with epoch 3 transitioned to fatal state"), Kind.CLIENT_FAILED),
        (JAVA.format("Received fatal exception: group.instance.id gets fenced"), Kind.FENCED),
        ("2026-11-16 01:00:00,000 ERROR kafka.coordinator.heartbeat Unhandled Heartbeat loop error: 'NoneType' object is not callable", Kind.CLIENT_FAILED),
        ("2026-11-16 01:00:00,000 ERROR kafka.coordinator.heartbeat Heartbeat thread caught fenced group_instance_id one error", Kind.FENCED),
        ("%0|1794886995.311|FATAL|rdkafka#consumer-1| [thrd:main]: Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id: Fatal consumer error: Broker: Static consumer fenced by other consumer with same group.instance.id", Kind.FENCED),
        ("2026-11-17 03:43:32,088 CRITICAL app.kafka FATAL [rdkafka#consumer-1] [thrd:main]: Fatal error: Local: Something else: it broke", Kind.CLIENT_FAILED),
    ],
)  # fmt: skip
def test_lines_of_each_client_are_seen(line: str, kind: Kind) -> None:
    """As the clients print them, in the layouts that applications give them."""
    assert kinds(line) == [kind]


@pytest.mark.parametrize(
    "line",
    [
        POLL,
        f"[2026-11-16 01:00:00,000] WARN {POLL} (com.acme.Poller)",
        f"[2026-11-16 01:00:00,000] WARN {POLL}",
        f"2026-11-16 01:00:00 WARN com.acme.Poller - [Consumer clientId=c, groupId=g] {POLL}",
        f"[2026-11-16 01:00:00,000] INFO record: {JAVA.format(POLL)} (com.acme.Poller)",
        JAVA.format(f"record: {POLL}"),
        "%0|1794886995.311|FATAL|rdkafka#producer-1| [thrd:main]: Fatal error: x: y",
        "record %0|1794886995.311|FATAL|rdkafka#consumer-1| [thrd:main]: Fatal error: x: y",
        "2026-11-17 03:43:32,088 INFO app FATAL [rdkafka#consumer-1] [thrd:main]: Fatal error: x: y",
        "2026-11-16 01:00:00,000 ERROR kafka.coordinator.heartbeat Unhandled Heartbeat loop error: ",
        "[2026-11-15 20:56:40,123] INFO [GroupCoordinator 1]: Preparing to rebalance group g (kafka.coordinator.group.GroupCoordinator)",
    ],
)
def test_lines_that_only_look_like_it_are_not_seen(line: str) -> None:
    """Another logger, another level, a quotation, a producer: none of them is the consumer's client."""
    assert kinds(line) == []


def test_a_pattern_of_ones_own_counts_anywhere_in_a_line() -> None:
    """Whoever writes a pattern knows the lines."""
    watch = LogWatch([re.compile("OutOfMemoryError")])
    assert [sighting.kind for sighting in watch.line("java.lang.OutOfMemoryError: Java heap space")] == [None]
    assert watch.line("all is well") == []
