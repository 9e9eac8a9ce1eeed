"""The last part of docs/tutorial.md, on real Kafka 0.9.0.1, as a reader types it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.documentation.console import free_ports
from tests.documentation.test_tutorial import PORTS, TUTORIAL

_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.M | re.S)
_LIMIT_S = 900.0


def _run(words: list[str], environment: dict[str, str], typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, input=typed, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )


@pytest.mark.real
@pytest.mark.long
def test_the_same_happens_on_kafka_itself(
    available: Callable[[], AbstractContextManager[None]], tmp_path: Path
) -> None:
    """A group has no coordinator while both brokers with its replicas are dead, and has one again with one of
    them.
    """
    page = TUTORIAL.read_text(encoding="utf-8").partition("## The same on Kafka itself")[2]
    (tmp_path / "kelpie").write_text(f'#!/bin/sh\nexec {sys.executable} -m kelpie "$@"\n')
    (tmp_path / "kelpie").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "KELPIE_STATE": str(tmp_path / "state"),
    }
    typed = "\n".join(_BLOCK.findall(page)).replace(PORTS, free_ports(len(PORTS)))
    with available():
        try:
            told = _run(["bash", "-x"], environment, typed)
        finally:
            _run([str(tmp_path / "kelpie"), "real", "down"], environment)
    text = told.stdout
    assert text.count("total              300") == 3, (text, told.stderr)
    well, killed, started = text.split("GROUP      HASH")[1:]
    assert well.count(" yes") == 3
    assert "OK: nothing wrong was found with 3 groups." in well
    assert "CRITICAL: 1 of 3 groups has no coordinator (brokers 2 and 3 are dead)." in well
    assert killed.count("no: it has no leader (KLP101)") == 1
    assert started.count("yes") == 3
    assert "is down: 3 processes ended" in started
