"""Brokers that count what each group reads: with librdkafka, the mapping in memory."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka as ck
import pytest

from kelpie.evidence import read_evidence
from kelpie.lab import SyncCluster, mapping_stores
from kelpie.lab.lab_errors import LabError
from tests.lab.counted import QUICK, consumer, counted, send
from tests.lab.prometheus import read_strictly

HOSTILE = 'a "quoted"\\group\nof two lines, {odd="yes"} ✓'


@pytest.fixture
def cluster() -> Iterator[SyncCluster]:
    with SyncCluster(3, replication=3, config=QUICK, attribution="connection", control_port=0) as cluster:
        cluster.create_topic("orders", 3)
        yield cluster


def test_counts_are_what_the_client_received(cluster: SyncCluster) -> None:
    """Messages to the last one, on whichever broker; bytes as many as producers wrote."""
    for partition in range(3):
        send(cluster, "orders", 100 + partition, partition)
    with consumer(cluster, "billing", "app-1") as first, consumer(cluster, "audit", "app-2") as second:
        for reader in (first, second):
            reader.client.subscribe(["orders"])
            reader.read(303)
        first.poll(lambda: counted(cluster)["billing"] >= 303)
    assert counted(cluster) == {"billing": 303, "audit": 303}
    written = counted(cluster, "BYTES_IN")[""]
    assert counted(cluster, "BYTES_OUT") == {"billing": written, "audit": written}
    assert counted(cluster, "MESSAGE_IN") == {"": 303}
    assert counted(cluster, "ENTRIES_OUT")["audit"] >= 3


def test_reading_again_counts_again(cluster: SyncCluster) -> None:
    """From the middle of a batch, only what was asked for counts."""
    send(cluster, "orders", 100)
    with consumer(cluster, "billing", "app-1", enable_auto_commit=False) as first:
        first.client.subscribe(["orders"])
        first.read(100)
        first.client.commit(offsets=[ck.TopicPartition("orders", 0, 70)], asynchronous=False)
    with consumer(cluster, "billing", "app-1", enable_auto_commit=False) as again:
        again.client.subscribe(["orders"])
        again.read(30)
        again.poll(lambda: counted(cluster)["billing"] >= 130)
    assert counted(cluster)["billing"] == 130


@pytest.mark.parametrize("abruptly", [False, True])
def test_counters_begin_at_zero_with_the_broker(cluster: SyncCluster, abruptly: bool) -> None:
    """As KoP's do: a restart is a reset, after a kill as well."""
    send(cluster, "orders", 50)
    leader = cluster.describe()["topics"]["orders"][0]["leader"]
    with consumer(cluster, "billing", "app-1") as reader:
        reader.client.subscribe(["orders"])
        reader.read(50)
        reader.poll(lambda: counted(cluster)["billing"] == 50)
    before = {sample.name for sample in read_strictly(cluster.scrape(leader))}
    down = cluster.kill(leader) if abruptly else cluster.stop(leader)
    assert counted(cluster) == {}
    down.lift()
    after = {sample.name for sample in read_strictly(cluster.scrape(leader))}
    counters = {f"kop_server_{name}" for name in ("MESSAGE_OUT", "MESSAGE_IN", "REQUEST_LATENCY_count")}
    assert counters <= before
    assert not counters & after


def test_hostile_names_are_escaped(cluster: SyncCluster, tmp_path: Path) -> None:
    """A strict reader gets the name back. Written as KoP writes it, only Kelpie can read it."""
    send(cluster, "orders", 10)
    with consumer(cluster, HOSTILE, "app-1") as reader:
        reader.client.subscribe(["orders"])
        reader.read(10)
        reader.poll(lambda: counted(cluster))
    assert counted(cluster) == {HOSTILE: 10}
    leader = cluster.describe()["topics"]["orders"][0]["leader"]
    verbatim = cluster.scrape(leader, verbatim=True, dated=True)
    with pytest.raises(AssertionError):
        read_strictly(verbatim)
    (tmp_path / "broker-1.prom").write_text(verbatim)
    rows = read_evidence([tmp_path])
    assert {row.group for row in rows.traffic if row.group is not None} == {HOSTILE}
    assert rows.malformed


def test_latencies_are_summaries_by_api(cluster: SyncCluster) -> None:
    """In milliseconds, apart by success, with KoP's quantiles."""
    send(cluster, "orders", 1)
    with consumer(cluster, "billing", "app-1") as reader:
        reader.client.subscribe(["orders"])
        reader.read(1)
        samples = [sample for node in cluster.node_ids for sample in read_strictly(cluster.scrape(node))]
    fetches = [
        sample
        for sample in samples
        if sample.name.startswith("kop_server_REQUEST_LATENCY") and sample.labels["request"] == "Fetch"
    ]
    assert {sample.labels.get("quantile") for sample in fetches} == {
        *("0.5", "0.75", "0.95", "0.99", "0.999", "0.9999", "1.0", None)
    }
    assert {sample.labels["success"] for sample in fetches} <= {"true", "false"}
    (count,) = [s.value for s in fetches if s.name.endswith("_count") and s.value][:1]
    (total,) = [s.value for s in fetches if s.name.endswith("_sum") and s.value][:1]
    assert count >= 1
    assert 0 < total < 60_000


def test_the_control_api_has_scrapes_and_the_tree(cluster: SyncCluster) -> None:
    """For Prometheus, and for people with curl."""
    assert cluster.control_address is not None
    connection = http.client.HTTPConnection(cluster.control_address.removeprefix("http://"), timeout=10)

    def get(path: str) -> tuple[int, str, str]:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read().decode()

    with consumer(cluster, "billing", "app-1") as reader:
        reader.client.subscribe(["orders"])
        reader.poll(cluster.mappings)
        status, kind, text = get("/mappings")
        assert (status, kind) == (200, "text/plain; charset=utf-8")
        assert "/client_group_id/127.0.0.1-app-1\tvalue=b'billing'\tversion=" in text
    status, kind, text = get("/brokers/1/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert read_strictly(text)
    assert get("/brokers/9/metrics")[0] == 404
    cluster.kill(1)
    status, _, text = get("/brokers/1/metrics")
    assert (status, json.loads(text)) == (400, {"error": "Broker 1 is down."})
    connection.close()


def test_requests_to_the_store_can_be_held_and_refused(cluster: SyncCluster) -> None:
    """A held deletion waits until the fault is lifted; a refused write leaves no node."""
    with cluster.hold_mappings(operation="delete", path="*-app-1") as held:
        with consumer(cluster, "billing", "app-1") as reader:
            reader.client.subscribe(["orders"])
            reader.poll(cluster.mappings)
        held.wait()
        assert cluster.mappings() == {"/client_group_id/127.0.0.1-app-1": "billing"}
    with cluster.refuse_mappings(operation="put") as refused:
        with consumer(cluster, "audit", "app-2") as reader:
            reader.client.subscribe(["orders"])
            refused.wait()
            cluster.wait_for_group("audit", members=1)
        assert not any("app-2" in path for path in cluster.mappings())


def test_a_cluster_without_a_plan_does_not_count() -> None:
    """It says what is missing."""
    with SyncCluster(1) as cluster:
        assert cluster.twin.fabric.broker(1).traffic is None
        for ask in (cluster.mappings, lambda: cluster.scrape(1), cluster.hold_mappings):
            with pytest.raises(LabError, match="give the cluster a plan of attribution"):
                ask()
    with pytest.raises(LabError, match="name the plan, too"):
        SyncCluster(1, zookeeper="127.0.0.1:2181")
    with pytest.raises(LabError, match="There is no plan 'joint' of attribution; there are connection, join"):
        SyncCluster(1, attribution="joint")


def test_a_zookeeper_that_is_not_there_is_an_error_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any broker starts."""
    monkeypatch.setattr(mapping_stores, "_LIMIT_S", 0.3)
    with pytest.raises(LabError, match=r"ZooKeeper at 127\.0\.0\.1:1 did not answer"):
        SyncCluster(1, attribution="join", zookeeper="127.0.0.1:1").open()
