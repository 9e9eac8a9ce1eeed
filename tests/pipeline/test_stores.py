"""The whole pipeline with tables on real HDFS and on a real S3 server: the rows are those of a folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.places import Place, RemotePath
from kelpie.real.s3 import RealS3
from tests.evidence import unpacked
from tests.pipeline.lake_rows import all_rows

pytestmark = [pytest.mark.long, pytest.mark.real]

RECORDING = "kafka-0.9.0.1-coordinator-outage"
LIMIT_S = 1800


def run(into: Place) -> str:
    """What the command printed, on both streams."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kelpie", "pipeline", "run", "--master", "local[2]", "--cluster", "c"),
            *("--from", str(unpacked(RECORDING)), "--into", str(into), "--debug"),
        ],
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
