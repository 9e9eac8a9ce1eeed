"""Which address a console tool is given."""

import pytest

from kelpie.real import releases

_OURS = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("version", "name", "arguments", "given"),
    [
        ("4.3.1", "kafka-topics", ["--list"], ["--bootstrap-server", _OURS]),
        ("4.3.1", "kafka-topics", ["--list", "--bootstrap-server", "elsewhere:9092"], []),
        ("4.3.1", "kafka-topics", ["--describe", "--topic", "web-server"], ["--bootstrap-server", _OURS]),
        ("4.3.1", "kafka-log-dirs", ["--broker-list", "1,2"], ["--bootstrap-server", _OURS]),
        ("0.9.0.1", "kafka-console-producer", ["--topic", "hay"], ["--broker-list", _OURS]),
        ("0.9.0.1", "kafka-console-producer", ["--broker-list", "elsewhere:9092"], []),
        ("0.9.0.1", "kafka-console-producer", ["--broker-list=elsewhere:9092"], []),
    ],
)
def test_ours_is_added_unless_another_is_given(
    version: str, name: str, arguments: list[str], given: list[str]
) -> None:
    """A list of broker ids is no address, though the option has the name of one."""
    resolved = releases.resolve_tool(releases.find(version), name, arguments, bootstrap=_OURS, zookeeper=None)

    assert resolved[1] == [*given, *arguments]


def test_connector_of_spark_is_pinned() -> None:
    """Fetched like Kafka itself: each jar once, each with its checksum."""
    jars = releases.pinned("spark-kafka-4.2.0")

    assert len({jar.name for jar in jars}) == len(jars) == 4
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)
