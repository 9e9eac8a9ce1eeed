"""Commands to paste: right for any name, and for the way this cluster is reached."""

import shlex

from kelpie.cluster import ClusterView, commands

CLUSTER = ClusterView(now=0, bootstrap="kafka-1:9092")


def test_a_name_that_looks_like_an_option_is_still_a_name() -> None:
    """Kafka takes a group named --apply; pasted as it is, it would change the cluster."""
    line = commands.kelpie("reset", CLUSTER, "--to-earliest", name="--apply")
    assert shlex.split(line)[-2:] == ["--", "--apply"]
    plain = commands.kelpie("reset", CLUSTER, "--to-earliest", name="billing")
    assert plain == "kelpie reset -b kafka-1:9092 billing --to-earliest"


def test_kafkas_shell_for_zookeeper_takes_any_path() -> None:
    """Client properties are not for ZooKeeper, so the line stays as it is."""
    line = commands.zookeeper_shell(CLUSTER, "get", "/client_group_id/10.0.0.7-my app")
    assert shlex.split(line) == [
        "zookeeper-shell.sh",
        "ZOOKEEPER:2181",
        "get",
        "/client_group_id/10.0.0.7-my app",
    ]
    assert commands.with_properties(line, "admin.conf") == line


def test_client_properties_go_with_every_command() -> None:
    """A cluster that was reached with them cannot be reached without."""
    line = commands.with_properties(commands.kelpie("doctor", CLUSTER, name="billing"), "my admin.conf")
    assert line == "kelpie doctor -b kafka-1:9092 --command-config 'my admin.conf' billing"
    assert commands.with_properties(line, "another.conf") == line
    tool = commands.with_properties(commands.kafka("kafka-console-consumer", CLUSTER), "admin.conf")
    assert tool == "kafka-console-consumer.sh --bootstrap-server kafka-1:9092 --consumer.config admin.conf"
    assert commands.with_properties("group.id=billing", "admin.conf") == "group.id=billing"
