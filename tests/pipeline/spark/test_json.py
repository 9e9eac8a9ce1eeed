"""The summary of a run, for programs."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kelpie.cli import main
from kelpie.pipeline.spark import session
from tests.documents import checked

LIMIT_S = 900


def words(folder: Path, *action: str) -> list[str]:
    """A run over a file that nobody knows."""
    (folder / "evidence").mkdir()
    (folder / "evidence" / "groups.txt").write_text("nothing that anybody knows\n")
    places = ["--from", str(folder / "evidence"), "--into", str(folder / "tables")]
    return ["pipeline", *action, "--json", "--cluster", "c", *places]


def judge(printed: str) -> None:
    document = checked("pipeline-run", printed)
    assert (document["cluster"], document["files"]) == ("c", 1)
    assert document["unusable"][0]["file"].endswith("groups.txt")


def test_a_run_prints_its_summary_as_the_schema_says(
    tmp_path: Path, available: Callable[[], AbstractContextManager[None]]
) -> None:
    """One document on standard output; progress goes to standard error, and so does what Java prints."""
    command = [sys.executable, "-m", "kelpie", *words(tmp_path, "run")]
    with available():
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    judge(done.stdout)


def test_a_stream_prints_its_summary_as_the_schema_says(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same document. It gets the Spark that tests share, and leaves it open: a process of its own would
    show nothing of Java that the run above does not.
    """
    monkeypatch.setattr(session, "open_session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    main(words(tmp_path, "stream", "--once"))
    judge(capsys.readouterr().out)
