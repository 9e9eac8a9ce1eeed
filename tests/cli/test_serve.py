"""`kelpie serve` as a person starts and ends it."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster
from kelpie.real.ports import free


def test_it_serves_until_it_is_interrupted() -> None:
    with SyncCluster(1, offsets_partitions=4) as cluster:
        port = free(1)[0]
        command = [sys.executable, "-m", "kelpie", "serve", "-b", cluster.bootstrap_servers, "--no-store"]
        with subprocess.Popen(
            [*command, "--listen", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        ) as process:
            try:
                assert process.stdout is not None
                said = process.stdout.readline()
                address = re.search(r"http://\S+/", said)
                assert address is not None, said
                assert b"Kelpie" in _get(address[0])
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode == 0, err
        assert (out, err) == ("", "")


def _get(address: str) -> bytes:
    """The server may need a moment between what it says and its first answer."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(address, timeout=30) as answer:
            text: bytes = answer.read()
            return text
        time.sleep(0.05)
    raise AssertionError(f"no answer from {address}")


@pytest.mark.parametrize("listen", ["0.0.0.0:8088", "[::]:8088", "192.0.2.1:80", "kafka-1:80"])
def test_it_refuses_to_be_reached_from_elsewhere(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "-b", "127.0.0.1:1", "--listen", listen]) == 64
    assert "only a loopback address" in capsys.readouterr().err


@pytest.mark.parametrize("listen", ["8088", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", ":80"])
def test_a_bad_address_is_explained(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "-b", "127.0.0.1:1", "--listen", listen]) == 64
    assert "is no address" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    with SyncCluster(1, offsets_partitions=1) as cluster:
        taken = cluster.bootstrap_servers
        assert main(["serve", "-b", taken, "--no-store", "--listen", taken]) == 74
    assert f"cannot listen at {taken}" in capsys.readouterr().err
