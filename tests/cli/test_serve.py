"""`kelpie serve` as a person starts and ends it."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

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


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A file of passwords; nobody knows the one that is in it."""
    path = tmp_path / "people"
    path.write_text("anna:$2y$04$" + "." * 53 + "\n")
    path.chmod(0o600)
    return path


def refusal(capsys: pytest.CaptureFixture[str], *options: str, status: int = 64) -> str:
    """What it says instead of serving, on one line."""
    assert main(["serve", "-b", "127.0.0.1:1", *options]) == status
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("listen", ["0.0.0.0:8088", "[::]:8088", "192.0.2.1:80", "kafka-1:80"])
def test_it_refuses_to_be_reached_from_elsewhere_without_a_login(
    listen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, "--listen", listen)
    for cure in ("--passwords FILE", "htpasswd -B", "--login-header", "--trusted-proxy", "ssh -L"):
        assert cure in said


def test_passwords_do_not_cross_a_network_in_plain_text(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, "--listen", "0.0.0.0:8088", "--passwords", str(people))
    assert "in plain text. Give --certificate" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--login-header", "X-Forwarded-User"], "anybody can send this header"),
        (["--login-header", "x y", "--trusted-proxy", "127.0.0.1"], "is no name of a header"),
        (["--login-header", "X-User", "--trusted-proxy", "proxy"], "--trusted-proxy: 'proxy' does not"),
        (["--login-header", "X-User", "--trusted-proxy", "10.0.0.1/8"], "has host bits set"),
        (["--trusted-proxy", "127.0.0.1"], "is for a login"),
        (["--passwords", "/nowhere"], "/nowhere cannot be read"),
        (["--certificate", "/nowhere"], "belong together"),
        (["--certificate", "/nowhere", "--key", "/nowhere"], "No such file"),
        (["--host-name", "a:80"], "is no name of a host"),
        (["--allow-repairs"], "--allow-repairs needs a login"),
    ],
)
def test_a_login_that_cannot_be_is_explained(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, *options)


def test_it_does_not_start_without_its_audit_log(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, "--passwords", str(people), "--audit", str(tmp_path), status=74)
    assert "cannot be written" in said
    assert "--audit" in said


def test_repairs_need_a_cluster(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evidence").mkdir()
    options = ["--evidence", str(tmp_path / "evidence"), "--no-store", "--passwords", str(people)]
    options += ["--audit", str(tmp_path / "audit.jsonl"), "--allow-repairs"]
    assert main(["serve", *options]) == 64
    assert "--allow-repairs needs a cluster" in capsys.readouterr().err


def test_it_does_not_start_with_passwords_that_others_may_write(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people.chmod(0o666)
    assert "can be written by others" in refusal(capsys, "--passwords", str(people))


@pytest.mark.parametrize("listen", ["8088", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", ":80"])
def test_a_bad_address_is_explained(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "-b", "127.0.0.1:1", "--listen", listen]) == 64
    assert "is no address" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--metrics", "kelpie,nobody"], "kafka-exporter"),
        (["--metrics", ","], "kafka-exporter"),
        (["--metrics-most", "0"], "above 0"),
        (["--metrics-most", "all"], "above 0"),
        (["--metrics-granularity", "record"], "partition, topic"),
        (["--metrics-groups", ""], "empty name"),
    ],
)
def test_metrics_that_cannot_be_are_explained(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        assert main(["serve", "--evidence", ".", *options]) == 64
    assert words in capsys.readouterr().err


def test_a_port_that_is_taken_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    with SyncCluster(1, offsets_partitions=1) as cluster:
        taken = cluster.bootstrap_servers
        assert main(["serve", "-b", taken, "--no-store", "--listen", taken]) == 74
    assert f"cannot listen at {taken}" in capsys.readouterr().err
