"""`kelpie collect` as a person uses it."""

import argparse
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.cli.amounts import duration, size
from kelpie.cli.collect import amount
from kelpie.evidence.snapshot_files import read_snapshot
from kelpie.lab import SyncCluster
from tests.collect.rounds import snapshots


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    with SyncCluster(1) as cluster:
        yield cluster


def test_a_line_for_each_round_fits_the_terminal(
    cluster: SyncCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Time, groups, partitions, what was unasked, bytes, how long."""
    words = ["collect", "-b", cluster.bootstrap_servers, "--into", str(tmp_path), "--every", "50ms"]
    assert main([*words, "--for", "100ms"]) == 0
    first, head, *lines = capsys.readouterr().out.splitlines()
    assert first.endswith(f"into {tmp_path}, every 0.05 s.")
    assert re.sub(" +", " ", head) == "TIME (UTC) GROUPS PARTITIONS UNASKED BYTES TOOK"
    assert lines
    assert len(lines) == len(snapshots(tmp_path))
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +0 +0 +0 +[\d.]+ K?B +\d+\.\d s", line)
        assert len(line) == len(head) <= 80
    assert main([*words, "--for", "1ms", "-q", "--most-disk", "2KB"]) == 0
    assert capsys.readouterr().out == ""


def test_what_was_deleted_is_told(
    cluster: SyncCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wants longer memory gives it more room."""
    words = ["collect", "-b", cluster.bootstrap_servers, "--into", str(tmp_path), "--for", "1ms"]
    assert main(words) == 0
    kept = snapshots(tmp_path)[0].stat().st_size
    assert main([*words, "--most-disk", str(kept + 10)]) == 0
    assert "  deleted to stay below the limit: 1 file, of 20" in capsys.readouterr().out
    assert len(snapshots(tmp_path)) == 1


def test_a_signal_ends_it_in_order_and_a_kill_costs_nothing(
    cluster: SyncCluster, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    """Whatever ends it, and whenever: every file that a reader sees is whole."""
    command = [sys.executable, "-m", "kelpie", "collect", "-b", cluster.bootstrap_servers]
    command += ["--into", str(tmp_path), "--every", "1ms"]
    for ending, status in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)):
        before = len(snapshots(tmp_path))
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            wait_until(lambda before=before: len(snapshots(tmp_path)) > before + 3)
            process.send_signal(ending)
            _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (status, "")
    for path in snapshots(tmp_path):
        assert list(read_snapshot(path))
    assert main([*command[3:], "--for", "1ms"]) == 0
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "No broker is named."),
        (["-b", "127.0.0.1:1", "--into", "/dev/null"], "/dev/null cannot be used: "),
        (["--zookeeper", "127.0.0.1:1", "--round-limit", "300ms"], "ZooKeeper at 127.0.0.1:1 did not answer"),
        (["--zookeeper", "no port:x"], "is no address of ZooKeeper"),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, and what to do."""
    given = words if "--into" in words else [*words, "--into", str(tmp_path)]
    assert main(["collect", *given, "--for", "1ms"]) == 64
    told = capsys.readouterr().err
    assert said in told
    assert told.startswith("kelpie collect: ")
    assert len(told.splitlines()) == 1


def test_times_and_sizes_are_written_as_people_write_them() -> None:
    """And what is none is refused."""
    assert [duration(it) for it in ("30s", "5m", "2h", "1d", "10", "1.5h", "50ms")] == [
        30, 300, 7200, 86_400, 10, 5400, 0.05
    ]  # fmt: skip
    assert [size(it) for it in ("1GB", "500MB", "64KiB", "10", "1.5k", "2G")] == [
        10**9, 5 * 10**8, 65_536, 10, 1500, 2 * 10**9
    ]  # fmt: skip
    for text in ("", "0", "-1s", "soon", "1x", "9" * 20 + "d"):
        with pytest.raises(argparse.ArgumentTypeError):
            duration(text)
    for text in ("", "0", "-1", "much", "1XB"):
        with pytest.raises(argparse.ArgumentTypeError):
            size(text)
    assert [amount(it) for it in (5, 1500, 2_500_000, 3 * 10**9)] == ["5 B", "1.5 KB", "2.5 MB", "3.0 GB"]
