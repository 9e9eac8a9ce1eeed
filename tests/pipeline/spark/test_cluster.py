"""The whole pipeline on a real Spark cluster whose executors know Kelpie only by what they are sent."""

import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kelpie.cli import main
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.evidence import truth, unpacked
from tests.pipeline.spark.spark_cluster import SparkCluster

pytestmark = [pytest.mark.long, pytest.mark.real]

RECORDING = "kafka-0.9.0.1-coordinator-outage"
LIMIT_S = 600
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = (
    *("--conf", f"spark.driver.extraJavaOptions={JAVA}"),
    *("--conf", f"spark.executor.extraJavaOptions={JAVA}"),
    *("--conf", "spark.ui.enabled=false"),
)


@pytest.fixture(scope="module")
def cluster(available: Callable[[], Any]) -> Iterator[SparkCluster]:
    with available(), SparkCluster(workers=2) as cluster:
        yield cluster


def kelpie(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kelpie", "pipeline", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"} | environment,
    )


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Lake(folder).rows(TABLES[table], "c").to_pylist()
    return found


def test_recording_goes_through_a_cluster_that_has_no_kelpie(
    cluster: SparkCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Submitted, as an archive, with the code in a file: the tables tell what really had been done."""
    python, tables = cluster.python(), tmp_path / "tables"
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    proof = subprocess.run(
        [python, "-c", "import kelpie"], capture_output=True, check=False, env=alone, timeout=60
    )
    assert b"No module named 'kelpie'" in proof.stderr
    done = kelpie(
        *("submit", "--master", cluster.master, *QUICK, "--"),
        *("--from", Path(__file__).parents[2] / "evidence" / f"{RECORDING}.tar.xz"),
        *("--into", tables, "--cluster", "c"),
        PYSPARK_PYTHON=str(python),
    )
    assert done.returncode == 0, done.stderr
    assert "waiting for executors" in done.stdout  # spark-submit makes one stream of the driver's two.
    assert "Findings: 2 critical" in done.stdout
    groups = [line.split() for line in (truth(RECORDING) / "groups.txt").read_text().splitlines()]
    hit = {line[0] for line in groups if line[2] == "hit"}
    assert {group for row in rows(tables, "coordinator_outage") for group in row["groups"]} == hit
    assert {row["group"] for row in rows(tables, "group_health")} >= {line[0] for line in groups}
    assert rows(tables, "quarantine") == []
    assert list((tables / "_staging").iterdir()) == []
    _assert_same_offsets(tables, capsys)


def _assert_same_offsets(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that executors decoded are those that this process reads without Spark."""
    assert main(["offsets", "recover", str(tables), "--group", "billing-1", "--csv"]) == 0
    of_tables = capsys.readouterr().out
    assert main(["offsets", "recover", str(unpacked(RECORDING)), "--group", "billing-1", "--csv"]) == 0
    assert capsys.readouterr().out == of_tables


def test_executors_that_lack_a_module_are_told(cluster: SparkCluster, tmp_path: Path) -> None:
    """Which one, on which host, and what to do; in place of a page of traces for each task.

    Their Python comes along in an archive.
    """
    archive = tmp_path / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as target:
        target.add(cluster.python("numba").parent, "bin")
    done = kelpie(
        *("run", "-q", "--master", cluster.master, *QUICK, "--conf", "spark.cores.max=1"),
        *("--archives", f"{archive}#here", "--from", unpacked(RECORDING), "--into", tmp_path / "tables"),
    )
    assert done.returncode == 3, done.stderr
    assert "lacks numba" in done.stderr
    assert "--archives" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_interrupted_run_says_that_the_next_one_goes_on(tmp_path: Path) -> None:
    """Ctrl-C while tasks are at work: one line, and the status that shells expect."""
    command = [sys.executable, "-m", "kelpie", "pipeline", "run", "--master", "local[1]"]
    command += ["--from", str(unpacked(RECORDING)), "--into", str(tmp_path / "tables")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            assert child.stderr is not None
            assert any("segments of the offsets topic" in line for line in child.stderr)
            os.killpg(child.pid, signal.SIGINT)
            told, said = child.communicate(timeout=LIMIT_S)
        finally:
            child.kill()
    assert child.returncode == 130, said
    assert told == ""
    assert said == "kelpie pipeline: interrupted; the next run goes on where this one was.\n"
