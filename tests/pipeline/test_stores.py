"""The whole pipeline on real HDFS and on a real S3 server: its rows are those of tables in a folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.client import SyncAdmin
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.places import Place, RemotePath
from kelpie.real.s3 import RealS3
from tests.evidence import unpacked
from tests.pipeline.lake_rows import all_rows

pytestmark = [pytest.mark.long, pytest.mark.real]

RECORDING = "kafka-0.9.0.1-coordinator-outage"
LIMIT_S = 1800


def run(into: Place, evidence: Place | None = None) -> str:
    """What the command printed, on both streams."""
    source = unpacked(RECORDING) if evidence is None else evidence
    options = ("--master", "local[2]", "--cluster", "c", "--debug")
    return kelpie("pipeline", "run", "--from", str(source), "--into", str(into), *options)


def kelpie(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kelpie", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "tables"
    run(folder)
    return folder


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    return capsys.readouterr().out


def told_alike(here: Path, there: RemotePath, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that read tables without Spark."""
    for words in (("doctor", "--json", "--tables"), ("offsets", "recover", "--json")):
        of_both = [printed(capsys, *words, str(tables)) for tables in (here, there)]
        assert of_both[0]
        assert of_both[0] == of_both[1]


def test_tables_on_hdfs_are_those_of_a_folder(
    local: Path, hdfs: RemotePath, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row for row; and a second run adds nothing."""
    tables = hdfs / "tables"
    run(tables)
    assert all_rows(tables, "c") == all_rows(local, "c")
    assert " 0 new" in run(tables)
    assert all_rows(tables, "c") == all_rows(local, "c")
    assert list((tables / "_staging").iterdir()) == []
    told_alike(local, tables, capsys)


def test_tables_on_s3_are_those_of_a_folder(
    local: Path, s3: RemotePath, real_s3: RealS3, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row for row; and neither the tables nor anything that was printed has the secret."""
    tables = s3 / "tables"
    said = run(tables)
    assert all_rows(tables, "c") == all_rows(local, "c")
    told_alike(local, tables, capsys)
    secret = real_s3.environment["AWS_SECRET_ACCESS_KEY"]
    assert secret not in said
    stored = real_s3.root / "s3" / "data"
    files = [Path(folder, name) for folder, _, names in os.walk(stored) for name in names]
    assert len(files) > 50
    assert [file for file in files if secret.encode() in file.read_bytes()] == []


@pytest.mark.parametrize("name", ["s3", "hdfs"])
def test_evidence_on_a_store_makes_the_tables_of_a_folder(
    name: str, local: Path, request: pytest.FixtureRequest
) -> None:
    """Row for row, but for where files are; and a second run adds nothing."""
    store = request.getfixturevalue(name)
    folder = unpacked(RECORDING)
    for path in folder.rglob("*"):
        if path.is_file():
            store.joinpath("evidence", *path.relative_to(folder).parts).upload(path)
    run(store / "tables", store / "evidence")
    there, here = all_rows(store / "tables", "c"), all_rows(local, "c")
    assert len(there.pop("evidence_file")) == len(here.pop("evidence_file"))
    assert there == here
    assert " 0 new" in run(store / "tables", store / "evidence")


@pytest.mark.parametrize("name", ["s3", "hdfs"])
def test_a_stream_reads_and_writes_on_a_store(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The topic, and what a collector writes, in two rounds: the rows are those of tables in a folder."""
    store = request.getfixturevalue(name)
    landing, places = store / "landing", (store / "tables", tmp_path / "tables")
    with SyncCluster(brokers=1, offsets_partitions=2) as cluster:
        cluster.create_topic("orders", partitions=2)
        for offset in (3, 5):
            with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
                admin.commit("billing", {TopicPartition("orders", partition): offset for partition in (0, 1)})
            at = ("-b", cluster.bootstrap_servers)
            kelpie("collect", *at, "--into", str(landing), "--every", "5s", "--for", "1s", "-q")
            for into in places:
                words = ("--from", str(landing), "--into", str(into), "--cluster", "c", "--once", "-q")
                kelpie("pipeline", "stream", *at, *words)
    there, here = (all_rows(into, "c") for into in places)
    assert len(there["offset_commit"]) == 4
    assert len(there["evidence_file"]) == 2
    assert there == here
