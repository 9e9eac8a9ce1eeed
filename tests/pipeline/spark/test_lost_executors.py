"""Executors come and go: a task whose executor is killed is done elsewhere, once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evidence import unpacked
from tests.pipeline.lake_rows import all_rows
from tests.pipeline.spark.spark_cluster import SparkCluster
from tests.pipeline.spark.test_cluster import QUICK, RECORDING, kelpie

pytestmark = [pytest.mark.long, pytest.mark.real]

_BETWEEN_KILLS_S = 8.0
_MOST_KILLS = 5
_EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


@pytest.fixture
def cluster(available: Callable[[], Any]) -> Iterator[SparkCluster]:
    with available(), SparkCluster(workers=2) as cluster:
        yield cluster


def executors(cluster: SparkCluster) -> list[int]:
    """Those of this cluster, by their driver's master and the folder that they work in."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            command = (process / "cmdline").read_bytes()
            folder = os.readlink(process / "cwd")
        except OSError:
            continue
        if _EXECUTOR in command and folder.startswith(str(cluster.folder)):
            found.append(int(process.name))
    return sorted(found)


def kill_some(cluster: SparkCluster, ended: threading.Event, killed: list[int]) -> None:
    """The oldest one, again and again: a worker starts another one for it."""
    while len(killed) < _MOST_KILLS and not ended.wait(_BETWEEN_KILLS_S):
        for pid in executors(cluster)[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)


def test_executors_that_are_killed_cost_nothing_but_time(cluster: SparkCluster, tmp_path: Path) -> None:
    """The tables are those of a run on this machine, row for row."""
    alone, among_kills = tmp_path / "alone", tmp_path / "among-kills"
    words = ("--from", unpacked(RECORDING), "--cluster", "c")
    assert kelpie("run", "--master", "local[2]", *words, "--into", alone).returncode == 0
    ended, killed = threading.Event(), list[int]()
    killer = threading.Thread(target=kill_some, args=(cluster, ended, killed))
    killer.start()
    try:
        done = kelpie(
            *("run", "--master", cluster.master, *QUICK, *words, "--into", among_kills),
            # Without these, Spark gives up a task after four losses, and a host after two.
            *("--conf", "spark.task.maxFailures=20", "--conf", "spark.excludeOnFailure.enabled=false"),
        )
    finally:
        ended.set()
        killer.join()
    assert done.returncode == 0, done.stderr
    assert killed
    assert all_rows(among_kills, "c") == all_rows(alone, "c")
