"""Snapshots that `kelpie collect` took of a cluster, before, during and after an outage, as tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.evidence import read_evidence
from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.recognition import Kind
from kelpie.evidence.snapshot_files import Header, pack
from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for
from kelpie.observations import Observations
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.results import read_diagnosis, read_positions
from kelpie.pipeline.run import run
from kelpie.pipeline.sources.inventory import take_inventory
from kelpie.pipeline.sources.snapshots import surveys as collected
from kelpie.pipeline.sources.snapshots.chosen import chosen_rows
from kelpie.pipeline.sources.snapshots.outputs import observed
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from tests.collect.months import write
from tests.collect.rounds import collect, diagnosed, snapshots
from tests.repair.scene import PARTITIONS, a_cluster, commit, home, replicas_of

GROUPS = [f"g-{number}" for number in range(8)]
ODD = 'a "quoted"\nname\t\\ and \x1b[2J'
VICTIM = "g-1"


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(str(folder / table)).to_pyarrow_table().to_pylist()
    return found


def facts(diagnosis: Diagnosis) -> dict[str, object]:
    """What must be the same, whoever says it."""
    return {
        "groups": diagnosis.groups,
        "findings": {
            (it.code, it.group, it.severity, it.summary, it.since, it.until) for it in diagnosis.findings
        },
        "open": diagnosis.open,
        "unlisted": set(diagnosis.unlisted),
        "unasked": {(it.kind, it.name, it.reason) for it in diagnosis.unasked},
        "now": diagnosis.cluster.now,
        "dead": {node for node, it in diagnosis.cluster.brokers.items() if it.alive is False},
        "settings": dict(diagnosis.cluster.settings),
    }


def strike(cluster: SyncCluster) -> list[int]:
    nodes = replicas_of(cluster, home(VICTIM))
    for node in nodes:
        cluster.kill(node)
    return nodes


@pytest.mark.long
def test_tables_say_what_the_doctor_says_of_the_landing_folder(
    spark: SparkSession, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    """Partial as the cluster is; rounds count as looks at several times; files that came later count once."""
    landing, tables = tmp_path / "landing", tmp_path / "tables"
    with a_cluster() as cluster:
        for group in [*GROUPS, ODD]:
            commit(cluster, group, {0: 4, 1: 7})
        before = collect(landing, cluster.bootstrap_servers, 2)
        dead = strike(cluster)
        hit = {it for it in [*GROUPS, ODD] if set(replicas_of(cluster, home(it))) == set(dead)}
        wait_until(lambda: _look(cluster, landing) == hit)
        whole = snapshots(landing)
        torn = landing / "half.jsonl.gz"
        torn.write_bytes(whole[0].read_bytes()[:-20])
        (landing / "none.jsonl.gz").write_bytes(b"\x1f\x8b not gzip at all")

        summary = run(spark, Lake(tables), [landing])
        during = read_diagnosis(tables)
        wanted = diagnosed(landing)
        assert summary.cluster == before[0].cluster
        assert facts(during) == facts(wanted)
        assert {it.group for it in during.findings if it.code == "KLP101"} == hit
        assert {name for name, _ in summary.unusable} == {torn.name, "none.jsonl.gz"}
        surveyed = [row for row in rows(tables, "bronze/cluster_snapshot") if row["kind"] == "survey"]
        assert len(surveyed) == len(whole)
        assert {row.offset for row in read_positions(tables).committed if row.group == VICTIM} == {4, 7}
        gaps = [row for row in rows(tables, "silver/coordinator_timeline") if row["node"] is None]
        assert {row["offsets_partition"] for row in gaps} >= {partition_for(it, PARTITIONS) for it in hit}
        lag = [row for row in rows(tables, "silver/lag") if row["group"] == VICTIM and row["partition"] == 0]
        assert len({row["at"] for row in lag}) > 1
        assert {row["lag"] for row in lag} == {6}

        for node in dead:
            cluster.start(node)
        wait_until(lambda: not _look(cluster, landing))
    collect(landing, cluster.bootstrap_servers)
    summary = run(spark, Lake(tables), [landing])
    assert summary.new_files == len(snapshots(landing)) - len(whole)
    assert facts(read_diagnosis(tables)) == facts(diagnosed(landing))


def _look(cluster: SyncCluster, landing: Path) -> set[str | None]:
    """One more round; who has no coordinator."""
    collect(landing, cluster.bootstrap_servers)
    found = diagnosed(landing).findings
    return {it.group for it in found if it.code == "KLP101" and it.severity is Severity.CRITICAL}


@pytest.mark.parametrize("cut", [1, 9, 400])
def test_what_is_left_of_a_snapshot_is_not_believed(cut: int, tmp_path: Path) -> None:
    """A reader of half a file would take what is missing for what is gone."""
    with SyncCluster(1) as cluster:
        collect(tmp_path, cluster.bootstrap_servers)
    (path,) = snapshots(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    (batch,) = collected._read("x", str(path), len(data) - cut, "c")
    (row,) = batch.to_pylist()
    assert row["reason"].startswith("It ")
    assert row["kind"] is None
    assert row["bytes"] == data[:-cut][:4096]


def test_weeks_of_snapshots_are_looked_at_as_in_files(spark: SparkSession, tmp_path: Path) -> None:
    """The same few of many, also where a group stood that nobody can be asked about any more."""
    landing, lake = tmp_path / "landing", Lake(tmp_path / "tables")
    write(landing)
    items = take_inventory([landing], Search(tmp_path, Budget()), tmp_path / "room").items
    mine, left_out = collected.sort_out(items, "c")
    assert left_out == {}
    rows = collected.read_surveys(spark, mine, cluster="c")
    tables = ClusterTables(spark, lake, "c")
    tables.append("cluster_snapshot", rows, application="test", version=1)

    wanted = read_evidence([landing])
    known = KnownCluster(lake, "c")
    whole = known.observations
    for name in ("brokers", "partitions", "listings", "ends", "settings"):
        assert sorted(map(repr, getattr(whole, name))) == sorted(map(repr, getattr(wanted, name))), name
    seen = chosen_rows(known.read, known.choice).to_pylist()
    seen.sort(key=lambda row: (row["snapshot"], row["ordinal"]))
    of_groups = observed(seen)
    for name in ("answers", "states", "committed"):
        assert sorted(map(repr, getattr(of_groups, name))) == sorted(map(repr, getattr(wanted, name))), name
    assert of_groups.known_groups == wanted.known_groups
    told = {*map(repr, whole.unasked), *map(repr, of_groups.unasked)}
    assert told == set(map(repr, wanted.unasked))


def test_snapshots_of_another_cluster_are_left_out_with_the_reason(tmp_path: Path) -> None:
    """A run makes tables of one cluster: the one that was named, else the one with most snapshots."""
    for name, cluster in (("1.gz", "c"), ("2.gz", "c"), ("3.gz", "d")):
        (tmp_path / name).write_bytes(pack(Header(cluster, 1, 2, cluster, answered=1), Observations()))
    (tmp_path / "4.jsonl").write_text('{"format":"kelpie survey","version":1')
    items = take_inventory([tmp_path], Search(tmp_path, Budget()), tmp_path / "room").items
    assert all(item.kinds == {Kind.SURVEY} for item in items)
    for wanted, others in (("c", {"3.gz"}), ("any name", {"3.gz"}), ("d", {"1.gz", "2.gz"})):
        mine, left_out = collected.sort_out(items, wanted)
        assert left_out.keys() == {*others, "4.jsonl"}
        assert {it.file.name for it in mine} == {"1.gz", "2.gz", "3.gz"} - others
        assert "cut off" in left_out["4.jsonl"]
    assert collected.clusters_of(items) == {"c", "d"}
