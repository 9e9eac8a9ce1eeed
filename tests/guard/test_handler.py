"""The guard inside a consumer in Python, with the real clients and the examples of docs/guard.md."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kelpie.guard import Fatal, GuardHandler, Limits, Sign
from kelpie.lab import SyncCluster

LIMIT_S = 60.0
PAGE = Path(__file__).parents[2] / "docs" / "guard.md"
FENCED = "Heartbeat thread caught fenced group_instance_id one error"


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    log = logging.getLogger("kafka.coordinator.heartbeat")
    yield log
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()


def test_the_application_is_called_from_another_thread(logger: logging.Logger) -> None:
    """A clean-up in the logging thread waits for the lock that this thread holds."""
    lock = threading.Lock()
    seen: list[Fatal] = []
    done = threading.Event()

    def close(fatal: Fatal) -> None:
        with lock:  # As KafkaConsumer.close() does.
            seen.append(fatal)
        done.set()

    logger.addHandler(GuardHandler(on_fatal=close))
    with lock:
        logger.error(FENCED)
        assert not done.wait(0.1)
    assert done.wait(LIMIT_S)
    assert [(fatal.sign, fatal.text) for fatal in seen] == [(Sign.FENCED, FENCED)]


def test_an_application_that_hangs_does_not_keep_the_process(logger: logging.Logger) -> None:
    """`then` comes after the grace time, whatever the callback does."""
    done = threading.Event()
    logger.addHandler(
        GuardHandler(on_fatal=lambda _: threading.Event().wait(), then=lambda _: done.set(), grace_s=0.05)
    )
    logger.error(FENCED)
    assert done.wait(LIMIT_S)


def test_quotations_and_other_loggers_do_not_count() -> None:
    """The same message in an application's own words is no fatal error."""
    handler = GuardHandler(patterns=["^disk is full"])
    own = logging.getLogger("billing")
    for message in (FENCED, f"record: {FENCED}"):
        handler.handle(own.makeRecord("billing", logging.ERROR, "f", 1, message, (), None))
    handler.handle(own.makeRecord("kafka.coordinator", logging.ERROR, "f", 1, f"record: {FENCED}", (), None))
    assert handler.fatal is None
    handler.handle(own.makeRecord("billing", logging.ERROR, "f", 1, "%s is full", ("disk",), None))
    handler.close()
    handler._thread.join(LIMIT_S)
    assert handler.fatal == Fatal(Sign.PATTERN, "", "disk is full")


def test_time_alone_can_decide(logger: logging.Logger) -> None:
    """A consumer that does not come back logs nothing more."""
    done = threading.Event()
    handler = GuardHandler(then=lambda _: done.set(), limits=Limits(return_s=0.05))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.info("(Re-)joining group g")
    logger.warning("Heartbeat poll expired, leaving group")
    assert done.wait(LIMIT_S)
    assert handler.fatal is not None
    assert handler.fatal.detail == "it did not join again within 0.05 s"


def example(title: str) -> str:
    """A program of the page, by the words before it."""
    text = PAGE.read_text()
    match = re.compile(r"```python\n(.*?)```", re.DOTALL).search(text, text.index(title))
    assert match is not None
    return match[1]


def started(program: str, cluster: SyncCluster, settings: dict[str, object]) -> subprocess.Popen[str]:
    before = f"SERVERS = {cluster.bootstrap_servers!r}\nSETTINGS = {settings!r}\n"
    return subprocess.Popen(
        [sys.executable, "-c", before + program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def produce(cluster: SyncCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("orders", b"r-1")
    assert producer.flush(LIMIT_S) == 0


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


def test_the_example_for_kafka_python_restarts_a_consumer_that_hangs() -> None:
    """It polls too late and never again; the program that follows in the same process goes on."""
    handle = """
import os, time
def handle(record):
    if "KELPIE_GUARD_RESTARTS" not in os.environ:
        time.sleep(3600)
    print("consumed", record.value.decode(), flush=True)
    os._exit(5)
"""
    program = handle + example("kafka-python:").replace("return_s=60", "return_s=1")
    settings = {"max_poll_interval_ms": 1500, "session_timeout_ms": 6000, "auto_offset_reset": "earliest"}
    with SyncCluster(brokers=1, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        produce(cluster)
        process = started(program, cluster, settings)
        try:
            out, errors = process.communicate(timeout=LIMIT_S)
        finally:
            end(process)
    assert out.splitlines() == [
        "restarting: poll-limit it did not join again within 1 s",
        "consumed r-1",
    ], errors
    assert process.returncode == 5


def test_the_example_for_confluent_kafka_ends_a_fenced_consumer() -> None:
    """librdkafka gives up for good when another static member takes its name; the application polls on."""
    settings = {"group.instance.id": "one", "heartbeat.interval.ms": 100, "session.timeout.ms": 6000}
    program = example("confluent_kafka hands").replace(
        '["orders"]', '["orders"], on_assign=lambda *_: print("assigned", flush=True)'
    )
    with SyncCluster(brokers=1, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        produce(cluster)
        program = f"handle = print\n{program}"
        fenced, other = started(program, cluster, settings), None
        try:
            assert fenced.stdout is not None
            assert fenced.stdout.readline() == "assigned\n"
            other = started(program, cluster, settings)
            out, errors = fenced.communicate(timeout=LIMIT_S)
        finally:
            end(fenced, *([other] if other is not None else []))
    assert out.startswith("ending: fenced FATAL [rdkafka#consumer-1] "), errors
    assert fenced.returncode == -signal.SIGTERM
