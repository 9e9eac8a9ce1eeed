"""Fixtures for pytest: a Kafka cluster of the test's own, and a topic in it.

    def test_something(kafka_cluster, kafka_topic):
        Producer({"bootstrap.servers": kafka_cluster.bootstrap_servers}).produce(kafka_topic, b"hello")

    @pytest.mark.kafka_cluster(brokers=1, persona="2.8", config={"group.initial.rebalance.delay.ms": 0})
    @pytest.mark.kafka_topic(partitions=6)
    def test_old_cluster(kafka_cluster, kafka_topic): ...

    @pytest.mark.parametrize("kafka_cluster", [{"persona": "2.8"}, {"persona": "4.3"}], indirect=True)
    def test_both(kafka_cluster): ...

Marks of a class or module hold for its tests; a mark of the test wins, and a parameter wins over marks.
"""

import re
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kelpie.lab.lab_errors import LabError

if TYPE_CHECKING:
    from kelpie.lab.synchronous import SyncCluster

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 200


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kafka_cluster(brokers=3, racks=None, offsets_partitions=None, replication=None, config=None, "
        'persona="4.3", port=None, control_port=None): options of the fixture kafka_cluster',
    )
    config.addinivalue_line(
        "markers",
        "kafka_topic(partitions=1, replication=None, config=None): options of the fixture kafka_topic",
    )


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> "Iterator[SyncCluster]":
    """A cluster that starts at once and ends with the test. A number as parameter: so many brokers."""
    # Only tests that use it pay for the import: pytest loads plugins in every run.
    from kelpie.lab.synchronous import SyncCluster  # noqa: PLC0415

    options = _options(request, "kafka_cluster", number="brokers")
    try:
        cluster = SyncCluster(**options)
    except (TypeError, LabError) as error:
        raise pytest.UsageError(f"kafka_cluster: {error}") from None
    with cluster:
        yield cluster


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_cluster: "SyncCluster") -> str:
    """The name of a fresh topic in the cluster. A number as parameter: so many partitions."""
    options = _options(request, "kafka_topic", number="partitions")
    test = _NOT_IN_NAMES.sub("-", request.node.name).strip("-.")[:_LONGEST_NAME]
    name = f"{test}-{secrets.token_hex(3)}"
    try:
        kafka_cluster.create_topic(name, **options)
    except (TypeError, LabError) as error:
        raise pytest.UsageError(f"kafka_topic: {error}") from None
    return name


def _options(request: pytest.FixtureRequest, name: str, *, number: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(name))):
        if marker.args:
            raise pytest.UsageError(f"The mark {name} takes its options by name, as in {number}=3.")
        options |= marker.kwargs
    given = getattr(request, "param", None)
    if given is None:
        return options
    return options | (dict(given) if hasattr(given, "keys") else {number: given})
