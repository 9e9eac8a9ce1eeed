"""The summary of a run, for programs."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.documents import checked

LIMIT_S = 900


@pytest.mark.parametrize("words", [["run"], ["stream", "--once"]])
def test_a_run_prints_its_summary_as_the_schema_says(
    words: list[str], tmp_path: Path, available: Callable[[], AbstractContextManager[None]]
) -> None:
    """One document on standard output; progress goes to standard error."""
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "groups.txt").write_text("nothing that anybody knows\n")
    command = [sys.executable, "-m", "kelpie", "pipeline", *words, "--json", "--cluster", "c"]
    command += ["--from", str(tmp_path / "evidence"), "--into", str(tmp_path / "tables")]
    with available():
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    document = checked("pipeline-run", done.stdout)
    assert (document["cluster"], document["files"]) == ("c", 1)
    assert document["unusable"][0]["file"].endswith("groups.txt")
