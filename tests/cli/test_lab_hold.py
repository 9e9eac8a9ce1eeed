"""`kelpie lab run --hold` prints a command that shows the fault."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kelpie.cli.lab import _hold
from kelpie.lab.scenarios import Moment


@pytest.mark.parametrize(("seconds", "ending"), [(0.0, "9092"), (1.8, "--watch 2"), (16.0, "--watch 16")])
def test_a_fault_that_takes_two_looks_is_watched(
    seconds: float, ending: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One look answered OK, and people took the scenario for broken."""
    cluster = SimpleNamespace(bootstrap_servers="127.0.0.1:9092")
    moment = SimpleNamespace(
        cluster=cluster, needs_logs=False, logs=tmp_path, seconds_of_history=seconds, zookeeper=None
    )
    asyncio.run(_hold(cast("Moment", moment), 0.01))
    command = next(line for line in capsys.readouterr().out.splitlines() if "kelpie doctor" in line)
    assert command.endswith(ending)
