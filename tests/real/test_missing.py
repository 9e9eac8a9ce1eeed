"""What a test run does where real Kafka cannot be had."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kelpie.real import ports

_ROOT = Path(__file__).parents[2]
_TEST = "tests/real/test_releases.py::test_release_serves_and_its_own_tool_creates_a_topic"


def _run_tests(cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (closed,) = ports.free(1)
    inherited = {name: value for name, value in os.environ.items() if name != "KELPIE_REQUIRE_REAL"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"{_TEST}[0.9.0.1]"],
        cwd=_ROOT,
        env={
            **inherited,
            "COLUMNS": "300",
            "KELPIE_CACHE": str(cache),
            "KELPIE_REPOSITORY": f"http://{ports.HOST}:{closed}",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.real
def test_test_is_skipped_with_one_line(tmp_path: Path) -> None:
    """Who has no network can still work, and is told what was left out."""
    run = _run_tests(tmp_path)

    assert run.returncode == 0, run.stdout
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("SKIPPED"))
    assert "Kafka 0.9.0.1 is not in the cache" in line or "missing" in line


@pytest.mark.real
def test_skip_becomes_a_failure_where_real_kafka_is_required(tmp_path: Path) -> None:
    """Or a build would stay green for years without ever meeting a real broker."""
    run = _run_tests(tmp_path, KELPIE_REQUIRE_REAL="1")

    assert run.returncode == 1, run.stdout
    assert "1 failed" in run.stdout
    assert "Traceback" not in run.stdout
