"""docs/how-to: programs and names in it are those that exist."""

import re
import subprocess
import sys
from pathlib import Path

from tests.documentation.console import files

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
_LIMIT_S = 300.0
_METRIC = re.compile(r"\bkelpie_[a-z_]+")


def test_the_test_that_a_reader_copies_passes(tmp_path: Path) -> None:
    """As it stands on the page, in a folder of its own."""
    for name, text in files((HOW_TO / "rehearse-a-failure.md").read_text(encoding="utf-8")).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_alerts_use_metrics_that_exist() -> None:
    """An alert on a name that nobody exports never fires."""
    page = (HOW_TO / "alert-in-prometheus.md").read_text(encoding="utf-8")
    there = set(_METRIC.findall((HOW_TO.parent / "metrics.md").read_text(encoding="utf-8")))
    named = set(_METRIC.findall(page))
    assert len(named) >= 5
    assert named <= there
