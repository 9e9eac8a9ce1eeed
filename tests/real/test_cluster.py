"""Stopped and paused brokers, tools, ports; and what is said when a start fails."""

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from kelpie.real import metadata_probe, ports
from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import ClusterRefused, NodeDied, RealError

RealKafka = Callable[..., RealCluster]


@pytest.mark.real
def test_stopped_and_paused_nodes(fresh_real_kafka: RealKafka) -> None:
    """An orderly end says goodbye; a frozen broker keeps its port and answers nobody."""
    cluster = fresh_real_kafka("0.9.0.1")

    cluster.pause(1)
    with pytest.raises(TimeoutError):
        metadata_probe.brokers(cluster.brokers[0].port, 0.2)
    cluster.resume(1)
    assert 1 in metadata_probe.brokers(cluster.brokers[0].port, 30)

    cluster.stop(1)

    assert not cluster.brokers[0].up
    assert "shut down completed" in cluster.brokers[0].log.read_text()
    with pytest.raises(ClusterRefused, match=r"broker 1 is not up\."):
        cluster.kill(1)
    with pytest.raises(ClusterRefused, match=r"no node '7'\. Nodes: zookeeper, 1\."):
        cluster.start(7)
    with pytest.raises(ClusterRefused, match=r"zookeeper is already up\."):
        cluster.start("zookeeper")


@pytest.mark.real
def test_settings_reach_the_broker_and_no_tool_is_run_when_classes_are_archived(
    real_kafka: RealKafka, fresh_real_kafka: RealKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller's settings win over the defaults, in keywords with underscores for dots. A tool takes half as
    long as a broker to start.
    """
    real_kafka("0.9.0.1")  # The first cluster of a release archives its classes.

    with monkeypatch.context() as patched:
        patched.setattr(RealCluster, "tool", lambda *_, **__: pytest.fail("a tool was run"))
        cluster = fresh_real_kafka("0.9.0.1", offsets_topic_num_partitions=7, log_retention_hours=3)

    lines = cluster.brokers[0].config.read_text().splitlines()

    assert "offsets.topic.num.partitions=7" in lines
    assert "log.retention.hours = 3" in cluster.brokers[0].log.read_text()


@pytest.mark.real
def test_chosen_port_is_used_or_refused(available: Callable[[], AbstractContextManager[None]]) -> None:
    """Who writes an address into a configuration wants that one, and no other."""
    (port,) = ports.free(1)

    with available(), RealCluster("0.9.0.1", port=port) as cluster:
        assert cluster.bootstrap_servers == f"127.0.0.1:{port}"
        with pytest.raises(ClusterRefused, match=rf"Port {port} of 127\.0\.0\.1 cannot be had"):
            RealCluster("0.9.0.1", port=port).open()
    with pytest.raises(ClusterRefused, match=r"Port 65536 does not exist"):
        RealCluster("0.9.0.1", brokers=2, port=65_535).open()


@pytest.mark.real
def test_broker_that_dies_at_its_start_is_quoted(
    available: Callable[[], AbstractContextManager[None]],
) -> None:
    """The end of its log says why, so nobody has to look for a folder that is gone."""
    cluster = RealCluster("0.9.0.1", config={"num.io.threads": "many"})

    with available(), pytest.raises(NodeDied, match=r"broker 1 ended at its start(?s:.)*num\.io\.threads"):
        cluster.open()

    assert cluster.nodes == {}


@pytest.mark.real
def test_lost_race_for_a_port_is_run_again(
    available: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the choice of a port and its use somebody else may take it."""
    choose = ports.free
    with socket.create_server((ports.HOST, 0)) as taken:
        choices = iter([[taken.getsockname()[1], *choose(1)]])
        monkeypatch.setattr(ports, "free", lambda count: next(choices, None) or choose(count))

        with available(), RealCluster("0.9.0.1") as cluster:
            assert cluster.brokers[0].port != taken.getsockname()[1]
            assert next(choices, None) is None


@pytest.mark.real
def test_tool_that_does_not_end_is_ended(real_kafka: RealKafka) -> None:
    """No test hangs on a consumer that waits for ever."""
    cluster = real_kafka("0.9.0.1")

    with pytest.raises(RealError, match=r"kafka-console-consumer of Kafka 0\.9\.0\.1 did not end within"):
        cluster.tool("kafka-console-consumer", "--topic", "nothing", limit_s=0.5)


@pytest.mark.real
def test_tool_runs_beside_the_cluster(real_kafka: RealKafka, wait_until: Callable[..., None]) -> None:
    """A consumer can be watched while other things are done."""
    cluster = real_kafka("0.9.0.1")

    consumer = cluster.spawn_tool("kafka-console-consumer", "--topic", "beside", "--from-beginning")
    # Unless told otherwise it sends without acknowledgement, and loses what meets a topic too young.
    surely = ("--request-required-acks", "1", "--message-send-max-retries", "20")
    sent = cluster.tool("kafka-console-producer", "--topic", "beside", *surely, stdin="hello\n")

    assert sent.status == 0
    wait_until(lambda: "hello" in consumer.said())
    consumer.kill()

    assert not consumer.alive


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"listeners": "x"}, "listeners cannot be set"),
        ({"a\nb": 1}, "is not the name of a setting"),
        ({"": 1}, "is not the name of a setting"),
        ({"a": "1\nprocess.roles=x"}, "holds a line break"),
    ],
)
def test_settings_that_would_break_the_cluster_are_refused(settings: dict[str, object], words: str) -> None:
    """Before anything is started."""
    with pytest.raises(ClusterRefused, match=words):
        RealCluster(config=settings)


@pytest.mark.parametrize("brokers", [0, -1, 17])
def test_impossible_numbers_of_brokers_are_refused(brokers: int) -> None:
    """Before anything is started."""
    with pytest.raises(ClusterRefused, match="1 to 16 brokers"):
        RealCluster(brokers=brokers)


def test_unknown_tool_is_refused_with_the_known_ones() -> None:
    """A typing error must not cost a search in a manual."""
    with pytest.raises(ClusterRefused, match=r"no tool 'kafka-topic'\. It has .*kafka-topics"):
        RealCluster("0.9.0.1").tool_command("kafka-topic", [])
