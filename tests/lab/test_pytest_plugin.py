"""The fixtures, in a pytest of their own."""

import os
import subprocess
import sys
from pathlib import Path

SUITE = """
import socket
import threading

import pytest


def served(cluster):
    host, port = cluster.bootstrap_servers.split(",")[-1].split(":")
    socket.create_connection((host, int(port)), 5).close()
    return len(cluster.node_ids)


def test_default(kafka_cluster, kafka_topic):
    assert served(kafka_cluster) == 3
    assert kafka_topic.startswith("test_default-")
    assert len(kafka_cluster.describe()["topics"][kafka_topic]) == 1


@pytest.mark.kafka_cluster(brokers=2, persona="2.8", config={"num.partitions": 7})
@pytest.mark.kafka_topic(partitions=5, replication=2, config={"cleanup.policy": "compact"})
def test_marked(kafka_cluster, kafka_topic):
    assert served(kafka_cluster) == 2
    state = kafka_cluster.describe()
    assert state["persona"] == "2.8"
    assert [len(own["replicas"]) for own in state["topics"][kafka_topic]] == [2] * 5


@pytest.mark.parametrize("kafka_cluster", [{"brokers": 1, "persona": "0.9"}, 2], indirect=True)
@pytest.mark.parametrize("kafka_topic", [4, {"partitions": 4}], indirect=True)
def test_parametrised(kafka_cluster, kafka_topic):
    assert served(kafka_cluster) in (1, 2)
    assert len(kafka_cluster.describe()["topics"][kafka_topic]) == 4


@pytest.mark.kafka_cluster(brokers=2)
class TestOfAClass:
    @pytest.mark.kafka_cluster(persona="3.9")
    def test_marks_add_up(self, kafka_cluster):
        assert served(kafka_cluster) == 2
        assert kafka_cluster.describe()["persona"] == "3.9"


@pytest.mark.parametrize("odd", ["ä/ö [x]", "y" * 300])
def test_odd_names(kafka_topic, odd):
    assert len(kafka_topic) < 249


def test_that_fails(kafka_cluster):
    raise AssertionError("on purpose")


@pytest.mark.kafka_cluster(broker=2)
def test_typo(kafka_cluster):
    pass


@pytest.mark.kafka_cluster(2)
def test_by_position(kafka_cluster):
    pass


def test_nothing_is_left():
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
"""


def test_fixtures_are_made_marked_and_parametrised(tmp_path: Path) -> None:
    """In a project that has nothing but the plugin; mistakes are told in one line."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "kelpie.pytest_plugin", "--strict-markers"]
    ended = subprocess.run(
        [*command, "-W", "error", "-p", "no:cacheprovider", "-q", "-ra", "test_suite.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "1 failed, 10 passed, 2 errors" in ended.stdout, ended.stdout
    assert "unexpected keyword argument 'broker'" in ended.stdout
    assert "takes its options by name, as in brokers=3" in ended.stdout


def test_the_plugin_loads_nothing_until_it_is_used() -> None:
    """Every run of pytest pays for the import of a plugin, also where nobody needs Kafka."""
    code = "import sys, kelpie.pytest_plugin as plugin; print('kelpie.lab.cluster' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
