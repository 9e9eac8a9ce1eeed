"""Rounds on lab clusters: what is in the files, and what the bad days do to them."""

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelpie.client.settings import Settings
from kelpie.client.survey import survey
from kelpie.collect.collecting import Collector, CollectPlan
from kelpie.collect.landing_folders import LandingRefused
from kelpie.evidence.snapshot_files import header_of, read_snapshot
from kelpie.lab import SyncCluster, virtual_time
from kelpie.lab.cluster import Cluster
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.observations import Observations
from kelpie.observations.encoding import gathered
from tests.collect.rounds import collect, diagnosed, settings_of, snapshots
from tests.repair.scene import a_cluster, commit, home, replicas_of

GROUPS = ["billing", 'a "quoted"\nname', "{[\\u0000", "ünï·cöde 🐟"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    with a_cluster() as cluster:
        for group in GROUPS:
            commit(cluster, group, {0: 4, 1: 7})
        yield cluster


def read(path: Path) -> Observations:
    return gathered(read_snapshot(path))


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def without_times(rows: list[Any]) -> list[Any]:
    """Times differ from one survey to the next, and so does who answers first."""
    plain = [row._replace(at=None) if hasattr(row, "_replace") else replace(row, at=None) for row in rows]
    return sorted(plain, key=repr)


def test_a_snapshot_holds_the_whole_survey(cluster: SyncCluster, tmp_path: Path) -> None:
    """Nothing of what the doctor would look at is lost on the way, whatever groups are called."""
    (told,) = collect(tmp_path, cluster.bootstrap_servers)
    (path,) = snapshots(tmp_path)
    found, wanted = read(path), asyncio.run(survey(settings_of(cluster.bootstrap_servers)))
    for name in ("brokers", "partitions", "listings", "states", "committed", "transactions", "epoch_ends"):
        assert without_times(getattr(found, name)) == without_times(getattr(wanted, name)), name
    assert {row[:3] for row in found.settings} == {row[:3] for row in wanted.settings}
    assert {row.group for row in found.committed} >= set(GROUPS)
    header = header_of(path.read_bytes())
    assert (header.cluster, header.answered, header.unasked) == (told.cluster, 3, 0)
    assert header.bootstrap == cluster.bootstrap_servers
    assert header.begun <= header.ended
    assert header.rows == len(lines(path)) - 1
    assert (told.groups, told.partitions, told.size) == (len(GROUPS) + 1, 11, path.stat().st_size)


def test_settings_are_told_when_they_change_or_when_their_file_is_gone(
    cluster: SyncCluster, tmp_path: Path
) -> None:
    """They are most of a small snapshot, and hardly ever change; but some file must have them."""
    first: list[Path] = []

    def tidy(done: object) -> None:
        if not first and len(snapshots(tmp_path)) == 2:
            first.append(snapshots(tmp_path)[0])
            first[0].unlink()

    collect(tmp_path, cluster.bootstrap_servers, 4, after=tidy)
    told = [header_of(path.read_bytes()).has_settings for path in snapshots(tmp_path)]
    assert told == [False, True, False]
    assert [bool(read(path).settings) for path in snapshots(tmp_path)] == told
    assert diagnosed(tmp_path).cluster.setting("offsets.retention.minutes") is not None


def test_a_slow_round_makes_the_next_one_late_and_not_double(tmp_path: Path) -> None:
    """Rounds never overlap, and none is made up for: one of 25 s every 10 s, then the usual rhythm."""

    async def run() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        network = MemoryNetwork()
        started = loop.wall()

        def clock() -> int:
            return round((loop.wall() - started) * 1000)

        async with Cluster(1, network=network, wall=loop.wall) as cluster:
            cluster.delay(25_000, api="ListGroups", count=1)
            settings = Settings.of(cluster.bootstrap_servers, request_timeout_s=60, connect_timeout_s=60)
            plan = CollectPlan(tmp_path, replace(settings, network=network), every_s=10, for_s=50)
            return await Collector(plan, clock=clock).run(asyncio.Event())

    assert virtual_time.run(run()) == 4
    first, second, third, fourth = (header_of(path.read_bytes()) for path in snapshots(tmp_path))
    assert first.ended - first.begun >= 25_000
    assert second.begun == first.ended
    assert (third.begun - second.begun, fourth.begun - third.begun) == (10_000, 10_000)


def test_a_dead_cluster_is_a_snapshot_too(tmp_path: Path) -> None:
    """That nobody answered is what was seen; the doctor tells it, and how all stood before."""
    with a_cluster() as cluster:
        commit(cluster, "billing", {0: 4})
        bootstrap = cluster.bootstrap_servers
        (before,) = collect(tmp_path, bootstrap)
    (told,) = collect(tmp_path, bootstrap)
    path = snapshots(tmp_path)[-1]
    header, found = header_of(path.read_bytes()), read(path)
    assert (told.cluster, header.cluster) == (before.cluster, before.cluster)
    assert (header.answered, header.unasked, told.unasked) == (0, 3, 3)
    assert {row.kind for row in found.unasked} == {"broker"}
    assert found.known_groups.keys() >= {"billing"}
    diagnosis = diagnosed(tmp_path)
    assert "billing" in diagnosis.groups
    assert len([row for row in diagnosis.unasked if "refused the connection" in row.reason]) == 3


def test_who_never_answered_goes_by_its_address(tmp_path: Path) -> None:
    """Until it answers: then it has an id, and what came before is not taken for another cluster."""
    with SyncCluster(1) as cluster:
        bootstrap = cluster.bootstrap_servers
        port = int(bootstrap.rpartition(":")[2])
    (told,) = collect(tmp_path, bootstrap)
    assert told.cluster == bootstrap
    with SyncCluster(1, port=port) as cluster:
        (known,) = collect(tmp_path, bootstrap)
    assert ":" not in known.cluster
    assert not [row for row in diagnosed(tmp_path).unasked if row.kind == "file"]


def test_another_cluster_at_the_same_address_is_refused(tmp_path: Path) -> None:
    """Its offsets would be taken for jumps of the first one's."""
    with SyncCluster(1) as cluster:
        bootstrap = cluster.bootstrap_servers
        port = int(bootstrap.rpartition(":")[2])
        (first,) = collect(tmp_path, bootstrap)
    with (
        SyncCluster(1, port=port),
        pytest.raises(
            LandingRefused, match=rf"now cluster \S+; .* of cluster {first.cluster}\. They are not mixed"
        ),
    ):
        collect(tmp_path, bootstrap)
    assert len(snapshots(tmp_path)) == 1


def test_a_group_without_a_coordinator_stays_known_to_the_next_collector(tmp_path: Path) -> None:
    """No broker lists it any more; the folder remembers it for as long as nobody says that it is gone."""
    with a_cluster() as cluster:
        commit(cluster, "billing", {0: 4})
        collect(tmp_path, cluster.bootstrap_servers)
        for node in replicas_of(cluster, home("billing")):
            cluster.kill(node)
        collect(tmp_path, cluster.bootstrap_servers)
        collect(tmp_path, cluster.bootstrap_servers)
    found = read(snapshots(tmp_path)[-1])
    assert "billing" in found.known_groups
    assert "billing" in {row.name for row in found.unasked if row.kind == "group"}
    assert header_of(snapshots(tmp_path)[-1].read_bytes()).answered == 1
    (position,) = [row for row in _committed(tmp_path, "billing") if row.partition == 0]
    assert position.offset == 4


def _committed(folder: Path, group: str) -> list[Any]:
    from kelpie.evidence import read_evidence

    newest: dict[int, Any] = {}
    for row in read_evidence([folder]).committed:
        if row.group == group:
            newest[row.partition] = row
    return list(newest.values())


def test_a_clock_that_goes_back_is_told(cluster: SyncCluster, tmp_path: Path) -> None:
    """Names stay in order; a person should know that times inside are not."""
    skew = [0]

    def clock() -> int:
        return time.time_ns() // 1_000_000 - skew[0]

    def turn_back(_: object) -> None:
        skew[0] = 3_600_000

    told = collect(tmp_path, cluster.bootstrap_servers, 2, clock=clock, after=turn_back)
    assert told[0].words == []
    assert "before the newest snapshot" in told[1].words[0]
    begun = [header_of(path.read_bytes()).begun for path in snapshots(tmp_path)]
    assert begun[1] < begun[0]


def test_a_limit_smaller_than_a_snapshot_ends_it_at_once_and_later_only_costs_the_round(
    cluster: SyncCluster, tmp_path: Path
) -> None:
    """Nobody should find out days later that nothing was kept."""
    with pytest.raises(LandingRefused, match=r"--most-disk allows 100 in all"):
        collect(tmp_path, cluster.bootstrap_servers, most_bytes=100)
    assert snapshots(tmp_path) == []
    (first,) = collect(tmp_path, cluster.bootstrap_servers)
    told = collect(tmp_path, cluster.bootstrap_servers, 3, most_bytes=first.size * 2)
    assert sum(len(it.deleted) for it in told) >= 1
    assert sum(path.stat().st_size for path in snapshots(tmp_path)) <= first.size * 2


def test_a_round_that_takes_too_long_is_broken_off_and_kept(cluster: SyncCluster, tmp_path: Path) -> None:
    """Who asks it to end waits no longer than that."""
    (told,) = collect(tmp_path, cluster.bootstrap_servers, limit_s=0.001)
    (row,) = read(snapshots(tmp_path)[0]).unasked
    assert "took longer than 0.001 s" in row.reason
    assert told.unasked == 1
