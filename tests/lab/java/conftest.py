"""`kafka` is the lab or real Kafka; `tool` runs Kafka 4.3.1's own tools against it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.lab.clients.clusters import Kafka
from tests.lab.java.clients import Clients
from tests.lab.java.clusters import clusters, kafka
from tests.lab.java.jvm import KafkaJvm, Said

__all__ = ["clusters", "kafka"]


@pytest.fixture(scope="session")
def java(
    available: Callable[[], AbstractContextManager[None]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaJvm]:
    with available():
        jvm = KafkaJvm(tmp_path_factory.mktemp("java"))
    yield jvm
    jvm.close()


@pytest.fixture
def tool(java: KafkaJvm, kafka: Kafka) -> Callable[..., Said]:
    """`tool("kafka-topics", "--list")`. The word BROKERS stands for the cluster's address."""

    def run(name: str, *arguments: str, stdin: str = "") -> Said:
        given = [kafka.bootstrap_servers if word == "BROKERS" else word for word in arguments]
        return java.tool(kafka.bootstrap_servers, name, *given, stdin=stdin)

    return run


@pytest.fixture
def clients(java: KafkaJvm, kafka: Kafka) -> Iterator[Clients]:
    """Producers and consumers of Kafka 4.3.1's client; closed after the test."""
    clients = Clients(java, kafka)
    yield clients
    clients.close()
