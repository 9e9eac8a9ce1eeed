"""The whole pipeline on a real YARN, tables on its HDFS; executors know Kelpie only by what they are sent."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from kelpie.places import Place, place_of
from kelpie.real.hadoop import RealHadoop
from tests.evidence import unpacked
from tests.pipeline.lake_rows import all_rows
from tests.pipeline.spark.spark_cluster import python_without_kelpie

pytestmark = [pytest.mark.long, pytest.mark.real]

RECORDING = "kafka-0.9.0.1-coordinator-outage"
LIMIT_S = 1800
_HOME = Path(pyspark.__file__).parent
_SETTINGS = {
    # Those of this machine: they need not be sent to HDFS.
    "spark.yarn.jars": f"local:{_HOME}/jars/*",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.driver.memory": "700m",
    "spark.executor.memory": "512m",
    "spark.executor.instances": "2",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "tables"
    words = ["run", "--master", "local[2]", "--cluster", "c", "--from", str(unpacked(RECORDING))]
    assert _kelpie([*words, "--into", str(folder)]).returncode == 0
    return folder


def _kelpie(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kelpie", "pipeline", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_tables_that_yarn_makes_are_those_of_this_machine(
    mode: str, real_yarn: RealHadoop, local: Path, tmp_path: Path
) -> None:
    """With the driver here, and with the driver on YARN, too."""
    into: Place = place_of(f"{real_yarn.url}/{mode}/tables")
    options = [word for name, value in _SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    done = _kelpie(
        [
            *("submit", "--master", "yarn", "--deploy-mode", mode, *options, "--", "--cluster", "c"),
            *("--from", str(unpacked(RECORDING)), "--into", str(into), "--wait", "10m"),
        ],
        PYSPARK_PYTHON=str(python_without_kelpie(tmp_path)),
        HADOOP_CONF_DIR=str(real_yarn.configuration),
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert all_rows(into, "c") == all_rows(local, "c")
