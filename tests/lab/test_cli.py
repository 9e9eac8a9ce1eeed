"""`kelpie lab` as a person uses it."""

import argparse
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kelpie.cli import lab
from kelpie.cli.command import CommandError
from kelpie.cli.terminal import folded

_PROGRAM = """
import argparse, sys
from kelpie.cli import lab
from kelpie.cli.command import CommandError
parser = argparse.ArgumentParser(prog="kelpie")
lab.register(parser.add_subparsers(required=True))
arguments = parser.parse_args()
try:
    sys.exit(arguments.run(arguments))
except CommandError as error:
    sys.exit(f"kelpie lab: {error}")
"""


@contextmanager
def _started(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The program, and what it says until it is ready."""
    command = [sys.executable, "-W", "error", "-c", _PROGRAM, "lab", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                if "Ctrl-C" in line:
                    break
            yield process, said
        finally:
            process.kill()


def _run(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="kelpie")
    lab.register(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["lab", *arguments])
    status: int = parsed.run(parsed)
    return status


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_up_serves_until_it_is_told_to_end(sign: int) -> None:
    """It prints where to connect, keeps quiet, and goes cleanly."""
    with _started("up", "--brokers", "2", "--persona", "2.8", "--config", "num.partitions=4") as (
        process,
        said,
    ):
        found = re.search(r"bootstrap  127\.0\.0\.1:(\d+),127\.0\.0\.1:\d+\n", said)
        control = re.search(r"control    (http://127\.0\.0\.1:\d+)\n", said)
        assert found, said
        assert control, said
        assert max(map(len, said.splitlines())) <= 80
        socket.create_connection(("127.0.0.1", int(found[1])), 5).close()
        with urllib.request.urlopen(f"{control[1]}/state", timeout=5) as answer:
            assert json.load(answer)["persona"] == "2.8"
        process.send_signal(sign)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_up_counts_by_group_on_request() -> None:
    """It says by which plan, and where to look."""
    with _started("up", "--brokers", "1", "--attribution", "incarnation") as (process, said):
        assert "counts     by group; plan incarnation, mapping in memory" in said
        scrape = re.search(r"curl (http://127\.0\.0\.1:\d+/brokers/1/metrics)\n", said)
        assert scrape, said
        assert max(map(len, said.splitlines())) <= 80
        with urllib.request.urlopen(scrape[1], timeout=5) as answer:
            assert "kop_server_ALIVE_CHANNEL_COUNT" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--zookeeper", "127.0.0.1:2181"), "mapping of a plan of attribution"),
        (("--attribution", "join", "--zookeeper", "nowhere:x"), "nowhere:x"),
    ],
)
def test_up_says_what_is_wrong_with_zookeeper(arguments: tuple[str, ...], why: str) -> None:
    """No traceback for a mistake of the user's."""
    with pytest.raises(CommandError, match=why):
        _run("up", *arguments)


def test_up_tells_more_on_request() -> None:
    """One line for each thing that happens."""
    with _started("up", "--brokers", "1", "-v") as (process, said):
        found = re.search(r"bootstrap  127\.0\.0\.1:(\d+)", said)
        assert found
        with socket.create_connection(("127.0.0.1", int(found[1])), 5) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(1) == b""
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        logged = process.stderr.read()
        assert process.wait(20) == 0
    assert re.search(
        r"broker 1 closes the connection of 127\.0\.0\.1:\d+: a frame of 1195725856 bytes", logged
    )


MISTAKES = [
    (["up", "--brokers", "0"], "A cluster of 0 brokers cannot be had"),
    (["up", "--persona", "7"], "no persona '7'"),
    (["up", "--config", "nonsense"], "--config 'nonsense' is no setting"),
    (["up", "--config", "=x"], "is no setting"),
    (["up", "--port", "0"], "Port 0 does not exist"),
    (["up", "--port", "65535", "--brokers", "3"], "Port 65536 does not exist"),
    (["up", "--control-port", "99999"], "Port 99999 does not exist"),
    (["run", "nothing"], "There is no scenario 'nothing'. kelpie lab list shows all "),
    (["run", "slow-poll", "--hold", "0"], "--hold 0: give the seconds to wait at most, more than 0."),
    (["up", "--log", "/proc/nowhere"], "The logs cannot be written to /proc/nowhere"),
    (["run", "coordinator-outage", "--persona", "1.0"], "cannot be played with persona '1.0'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_get_one_clear_sentence(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which fits the terminal, and no traceback."""
    with pytest.raises(CommandError) as refused:
        _run(*arguments)
    text = str(refused.value)
    assert message in " ".join(text.split())
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, folded(text, "kelpie lab: ").splitlines())) <= 80


def test_a_taken_port_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """And what else can be done."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"Port {port} of"):
            _run("up", "--brokers", "1", "--port", str(port))
    assert capsys.readouterr().out == ""


def test_scenarios_are_listed_and_played(capsys: pytest.CaptureFixture[str]) -> None:
    """`list` names what `run` takes; all of it fits the terminal."""
    assert _run("list") == 0
    listed = capsys.readouterr().out
    assert "coordinator-outage\n    Two brokers die;" in listed
    assert max(map(len, listed.splitlines())) <= 80
    assert _run("run", "coordinator-outage") == 0
    said = capsys.readouterr().out
    assert "Kafka 0.9" in said
    assert said.endswith("All as expected.\n")
    assert max(map(len, said.splitlines())) <= 80


def test_a_scenario_holds_while_somebody_looks(tmp_path: Path) -> None:
    """It prints what to type, keeps the fault, and goes on with Enter."""
    command = [sys.executable, "-W", "error", "-c", _PROGRAM, "lab", "run", "idle-members", "--hold"]
    command += ["--log", str(tmp_path / "logs")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Enter goes on" in line:
                break
        found = re.search(r"kelpie doctor -b 127\.0\.0\.1:(\d+),", said)
        assert found, said
        socket.create_connection(("127.0.0.1", int(found[1])), 5).close()
        rest, complaints = process.communicate("\n", timeout=20)
    assert process.returncode == 0
    assert rest.endswith("All as expected.\n")
    assert complaints == ""
    log = "".join(path.read_text() for path in (tmp_path / "logs").glob("broker-*.log"))
    assert "with 4 members." in log


def test_holding_ends_by_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may be there to press anything."""
    with open("/dev/null") as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        assert _run("run", "idle-members", "--hold", "0.2") == 0
    assert "waiting for 0.2 s" in capsys.readouterr().out


@pytest.mark.real
def test_a_scenario_with_zookeeper_starts_one_and_says_where_it_is(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    available: Callable[[], AbstractContextManager[None]],
) -> None:
    """The command that it prints asks brokers, ZooKeeper and logs."""
    with available(), open("/dev/null") as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        assert _run("run", "zookeeper-timeouts-contradict", "--hold", "0.2") == 0
    said = capsys.readouterr().out
    assert re.search(
        r"kelpie doctor -b 127\.0\.0\.1:\d+ --zookeeper 127\.0\.0\.1:\d+ \\\n +--evidence ", said
    )
    assert said.endswith("All as expected.\n")
    assert max(map(len, said.splitlines())) <= 80
