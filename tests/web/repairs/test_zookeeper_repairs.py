"""`migrate-offsets` on pages: offsets of a group in a real ZooKeeper become those of Kafka's group."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kelpie.client.zookeeper import connected
from kelpie.lab import SyncCluster
from kelpie.real.zookeeper import RealZooKeeper
from kelpie.repair import zookeeper_group
from tests.client.zookeeper_client import kazoo_client
from tests.repair.scene import GROUP, a_cluster, commit, committed
from tests.web.repairs.repairing import CLUSTER, Bench, a_bench, text_of

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    with a_cluster() as opened:
        yield opened


@pytest.fixture
def zookeeper(real_zookeeper: RealZooKeeper) -> Iterator[Any]:
    """With a group of Kafka 0.8's kind, which has been stopped."""
    with kazoo_client(real_zookeeper.connect) as client:
        for partition, offset in {0: 4, 1: 7}.items():
            path = f"/consumers/{GROUP}/offsets/orders/{partition}"
            client.create(path, str(offset).encode(), makepath=True)
        yield client


@pytest.fixture
def bench(
    tmp_path: Path,
    cluster: SyncCluster,
    real_zookeeper: RealZooKeeper,
    zookeeper: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))
    commit(cluster, GROUP, {0: 2})
    with a_bench(tmp_path, cluster, zookeeper=real_zookeeper.connect) as made:
        yield made


def test_offsets_are_taken_over_and_put_back(bench: Bench, cluster: SyncCluster, zookeeper: Any) -> None:
    """From the form of the group to the undo; ZooKeeper stays as it is."""
    form = bench.browser.get(f"{CLUSTER}/repairs?group={GROUP}")
    assert "Take offsets over from ZooKeeper" in form.text
    assert "migrate-offsets" in bench.browser.get(f"{CLUSTER}/repairs.json?group={GROUP}").json()["repairs"]
    plan = bench.plan("migrate-offsets", GROUP)
    same = "of group billing from ZooKeeper to Kafka's group of the same name."
    assert plan["plan"]["title"] == f"Move 2 offsets {same}"
    assert committed(cluster, GROUP) == {0: 2}, "looking changes nothing"
    chinese = bench.browser.get(f"{CLUSTER}/plan?id={plan['key']}", headers={"accept-language": "zh-CN"})
    assert '<span lang="en">' not in chinese.text
    run = bench.applied(plan, GROUP)
    assert (run["outcome"], run["failure"]) == ("done", None)
    assert committed(cluster, GROUP) == {0: 4, 1: 7}
    assert zookeeper.get(f"/consumers/{GROUP}/offsets/orders/0")[0] == b"4"
    undo = bench.plan("undo", change=run["change"])
    assert bench.applied(undo, GROUP)["outcome"] == "done"
    assert committed(cluster, GROUP) == {0: 2}
    assert [(line["event"], line["repair"]) for line in bench.events if line["event"] == "apply"] == [
        ("apply", "migrate-offsets"),
        ("apply", "undo"),
    ]


def test_choices_of_the_form_count(bench: Bench, cluster: SyncCluster) -> None:
    """Another name, one partition, and back: each is refused or done as the form says."""
    run = bench.applied(bench.plan("migrate-offsets", GROUP, new_name="other", topics="orders:1"), GROUP)
    assert run["outcome"] == "done"
    assert committed(cluster, "other") == {1: 7}
    commit(cluster, GROUP, {0: 6})
    left_out = bench.plan("migrate-offsets", GROUP, topics="orders:0")
    assert left_out["plan"]["steps"] == []
    assert "--backwards moves it back" in text_of(bench.page(left_out))
    back = bench.plan("migrate-offsets", GROUP, topics="orders:0", backwards="yes")
    assert bench.applied(back, GROUP)["outcome"] == "done"
    assert committed(cluster, GROUP)[0] == 4


def test_a_consumer_that_registers_meanwhile_ends_the_repair(
    bench: Bench, cluster: SyncCluster, zookeeper: Any
) -> None:
    """The plan was read for a while: who consumes now would lose its place."""
    plan = bench.plan("migrate-offsets", GROUP)
    zookeeper.create(f"/consumers/{GROUP}/ids/app-1", b"{}", ephemeral=True, makepath=True)
    run = bench.applied(plan, GROUP)
    assert run["outcome"] == "refused"
    assert "1 consumer registered in ZooKeeper: app-1" in run["failure"]
    assert committed(cluster, GROUP) == {0: 2}


def test_a_zookeeper_that_is_not_there_is_told(
    tmp_path: Path, cluster: SyncCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in Chinese."""
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))
    # Nothing will listen there, however long it is tried.
    monkeypatch.setattr(
        zookeeper_group, "connected", lambda hosts, _, **options: connected(hosts, 0.5, **options)
    )
    with a_bench(tmp_path, cluster, zookeeper="127.0.0.1:1") as bench:
        plan = bench.plan("migrate-offsets", GROUP)
        assert plan["failure"].startswith("ZooKeeper at 127.0.0.1:1 did not answer")
        page = bench.browser.get(f"{CLUSTER}/plan?id={plan['key']}", headers={"accept-language": "zh-CN"})
        assert "没有在" in page.text
        assert '<span lang="en">' not in page.text
