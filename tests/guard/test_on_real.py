"""`kelpie guard` brings real consumers of Kafka 0.8.2.2 back, after real ConsumerRebalanceFailedExceptions.

A member fails exactly if its new range, computed with a killed member still in the list, meets that member's
old range: its owner nodes stay until its session expires. Six partitions; "b" is killed, another one joins:

    before         a: -        b: 0 1 2  c: 3 4 5
    "d" joins      b: 0 1      c: 2 3    d: 4 5       c, which runs, meets 2       (watcher)
    "a" joins      a: 0 1      b: 2 3    c: 4 5       a, which starts, meets 0 1   (start-up)
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.real.cluster import RealCluster
from tests.client.zookeeper_client import kazoo_client
from tests.console_group import ConsoleGroup

pytestmark = pytest.mark.real
LIMIT_S = 90.0
Wait = Callable[..., None]


@pytest.fixture
def group(real_kafka: Callable[..., RealCluster], tmp_path: Path) -> Iterator[ConsoleGroup]:
    cluster = real_kafka("0.8.2.2")
    assert cluster.zookeeper_connect is not None
    hosts = cluster.zookeeper_connect
    name = f"guarded-{uuid.uuid4().hex[:8]}"
    with kazoo_client(hosts) as client, ExitStack() as stack:
        yield ConsoleGroup(cluster, name, tmp_path, TreeReader(client, hosts, 10), stack)


@pytest.mark.parametrize(
    ("guarded", "joining", "form"),
    [("c", "d", "watcher"), pytest.param("a", "a", "start-up", marks=pytest.mark.long)],
)
def test_a_consumer_whose_rebalance_failed_owns_partitions_again_and_reads(
    group: ConsoleGroup, guarded: str, joining: str, form: str, wait_until: Wait
) -> None:
    """After the failure such a process sits there, or ends with 0, until somebody restarts it."""
    killed = group.start("b")
    wait_until(lambda: group.shares() == {"b": 6}, limit_s=LIMIT_S)
    processes = {"c": group.start_guarded("c") if guarded == "c" else group.start("c")}
    wait_until(lambda: group.shares() == {"b": 3, "c": 3}, limit_s=LIMIT_S)

    killed.kill()
    processes[joining] = group.start_guarded(joining) if guarded == joining else group.start(joining)
    wait_until(lambda: f"saw rebalance-failed ({form})" in group.said(guarded), limit_s=LIMIT_S)
    wait_until(lambda: group.shares() == dict.fromkeys(processes, 3), limit_s=LIMIT_S)

    failure = "kafka.common.ConsumerRebalanceFailedException: x can't rebalance after 2 retries"
    restarts = group.said(guarded).count("starts it again in")
    group.produce(*(f"record {number} {failure}" for number in range(60)))
    read = {f"record {number} {failure}" for number in range(60)}
    wait_until(lambda: set().union(*map(group.records, processes)) >= read, limit_s=LIMIT_S)
    assert group.records(guarded), "the consumer that was brought back reads its share"
    assert group.said(guarded).count("starts it again in") == restarts, "a record restarts nothing"
    assert [process.poll() for process in processes.values()] == [None, None]
