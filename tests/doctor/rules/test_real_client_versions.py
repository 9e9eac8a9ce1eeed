"""KLP601 against real Kafka 4.3.1, with Java's consumer of 0.10.2.2."""

import asyncio
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kelpie.client.settings import Settings
from kelpie.doctor.finding import Finding, Severity
from kelpie.evidence import read_evidence
from kelpie.examination import Examination
from kelpie.real import fetch, java, releases
from kelpie.real.cluster import RealCluster

pytestmark = pytest.mark.real

_MAIN = "kafka.tools.ConsoleConsumer"
_LOGGING = """log4j.rootLogger=INFO, stderr
log4j.logger.org.apache.kafka.clients.NetworkClient=DEBUG
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


@contextmanager
def _old_consumer(servers: str, topic: str, group: str, folder: Path) -> Iterator[Path]:
    """Gives its log."""
    jars = releases.pinned("consumer-0.10.2.2", Path(__file__).parent)
    libraries = fetch.libraries("consumer-0.10.2.2", jars, title="Kafka's consumer of 0.10.2.2")
    logging = folder / "log4j.properties"
    logging.write_text(_LOGGING)
    options = (f"-Dlog4j.configuration=file:{logging}", "-Duser.timezone=UTC")
    command = java.command(f"{libraries}/*", _MAIN, heap_mb=64, options=options)
    command += ["--new-consumer", "--bootstrap-server", servers, "--topic", topic]
    command += ["--consumer-property", f"group.id={group}", "--from-beginning"]
    log = folder / "logs" / "consumer.log"
    log.parent.mkdir()
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            yield log
        finally:
            process.kill()
            process.wait(30)


def _found(servers: str, group: str, log: Path) -> list[Finding]:
    evidence = read_evidence([log.parent])
    examined = asyncio.run(Examination(Settings.of(servers), [group], evidence).examine())
    return [finding for finding in examined.diagnosis.findings if finding.code == "KLP601"]


def test_a_consumer_that_is_too_old_for_its_brokers_is_found(
    real_kafka: Callable[..., RealCluster],
    available: Callable[[], AbstractContextManager[None]],
    tmp_path: Path,
    wait_until: Callable[..., None],
) -> None:
    """It joins, gets the partitions and reads nothing: 4.0 removed the versions of Fetch that it has."""
    servers = real_kafka().bootstrap_servers
    topic = group = f"old-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        created.result(30)
    with available(), _old_consumer(servers, topic, group, tmp_path) as log:
        wait_until(lambda: b"to support FETCH version" in log.read_bytes(), limit_s=60)
        (finding,) = _found(servers, group, log)
    assert finding.group == group
    assert finding.severity > Severity.NOTICE
    assert "the consumer is too old. The consumer has FETCH up to version 3" in finding.summary
