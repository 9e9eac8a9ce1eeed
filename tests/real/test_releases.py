"""Every release of the catalogue starts on this Java and can be worked with."""

from collections.abc import Callable

import pytest

from kelpie.real import metadata_probe, releases
from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import ClusterRefused

RealKafka = Callable[..., RealCluster]


@pytest.mark.real
@pytest.mark.parametrize("version", releases.RELEASES)
def test_release_serves_and_its_own_tool_creates_a_topic(
    version: str, real_kafka: RealKafka, wait_until: Callable[..., None]
) -> None:
    """The jars in the list are all it takes, for the server and for the tools."""
    cluster = real_kafka(version)

    created = cluster.tool(
        "kafka-topics", "--create", "--topic", "hay", "--partitions", "2", "--replication-factor", "1"
    )

    assert (created.status, created.stderr) == (0, "")
    data = cluster.brokers[0].data
    wait_until(lambda: (data / "hay-0").is_dir() and (data / "hay-1").is_dir())
    port = cluster.brokers[0].port
    wait_until(
        lambda: metadata_probe.brokers(port, timeout_s=10) == {1: port}
    )  # 0.8 hears of itself by the topic.


@pytest.mark.real
@pytest.mark.parametrize("version", ["4.3.1", "0.8.2.2"])
def test_records_go_in_and_come_out(version: str, real_kafka: RealKafka) -> None:
    """Compression, offsets topic and the consumers of both ends of history."""
    cluster = real_kafka(version)

    # Unless told otherwise, the old one sends without acknowledgement and loses what meets a topic too young.
    surely = ("--request-required-acks", "1", "--message-send-max-retries", "20")
    sent = cluster.tool(
        "kafka-console-producer", "--topic", f"words-{version}", *surely, stdin="one\ntwo\nthree\n"
    )
    got = cluster.tool(
        "kafka-console-consumer", "--topic", f"words-{version}", "--from-beginning", "--max-messages", "3"
    )

    assert sent.status == 0, sent.stderr
    assert got.stdout.split() == ["one", "two", "three"]


@pytest.mark.real
def test_kcat_lists_the_broker(kcat: str, real_kafka: RealKafka) -> None:
    """A client that is not Java reaches the cluster by its bootstrap address."""
    import subprocess

    cluster = real_kafka()

    shown = subprocess.run(
        [kcat, "-L", "-b", cluster.bootstrap_servers], capture_output=True, text=True, timeout=60, check=True
    )

    assert f"broker 1 at {cluster.bootstrap_servers}" in shown.stdout


def test_unknown_version_is_refused_with_the_known_ones() -> None:
    """A typing error must not cost a search in a manual."""
    with pytest.raises(
        ClusterRefused, match=r"no Kafka '4\.9'.* 4\.3\.1, 3\.9\.2, 2\.8\.2, 0\.9\.0\.1, 0\.8\.2\.2"
    ):
        RealCluster("4.9")


@pytest.mark.parametrize("version", releases.RELEASES)
def test_list_of_jars_is_whole(version: str) -> None:
    """Each jar once, each with a checksum, and the server itself among them."""
    jars = releases.find(version).jars

    assert len({jar.file_name for jar in jars}) == len(jars)
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)
    assert {jar.revision for jar in jars if jar.organisation == "org.apache.kafka"} == {version}
    assert (releases.find(version).zookeeper is None) == (releases.find(version).quorum == "kraft")
