"""kelpie real, as a person types it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.documents import checked

from kelpie.real import fetch, releases
from kelpie.real.identity import ProcessIdentity
from kelpie.real.keeper import Keeper

Kelpie = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """With blanks and letters beyond ASCII: homes have such names."""
    return tmp_path / "stall für Schafe"


@pytest.fixture
def kelpie(state: Path) -> Kelpie:
    def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kelpie", "real", *arguments],
            env={**os.environ, "KELPIE_STATE": str(state), "COLUMNS": "80", **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def keeper(available: Callable[[], AbstractContextManager[None]], state: Path) -> Iterator[Keeper]:
    """Detached clusters end with the test all the same."""
    release = releases.find("0.9.0.1")
    with available():
        fetch.libraries(release.version, release.jars)
    keeper = Keeper()
    keeper.own(state)
    yield keeper
    keeper.clean()


def _processes(state: Path, name: str) -> dict[str, ProcessIdentity]:
    document = json.loads((state / "real" / name / "cluster.json").read_text())
    return {node["name"]: ProcessIdentity(node["pid"], node["start"]) for node in document["nodes"]}


def _fits(run: subprocess.CompletedProcess[str]) -> bool:
    return all(len(line) <= 80 for line in (run.stdout + run.stderr).splitlines() if "/" not in line)


@pytest.mark.real
def test_a_cluster_from_up_to_down(kelpie: Kelpie, keeper: Keeper, state: Path) -> None:
    """Every command finds what the one before it left, and `down` leaves nothing."""
    up = kelpie("up", "--version", "0.9.0.1", "--brokers", "2", "--config", "num.partitions=3")
    assert up.returncode == 0, up.stderr
    processes = _processes(state, "default")
    for identity in processes.values():
        keeper.watch(identity)
    assert all(identity.alive for identity in processes.values())
    assert set(processes) == {"zookeeper", "1", "2"}
    assert "default: Kafka 0.9.0.1, 2 brokers, ZooKeeper 3.4.6" in up.stdout
    assert "kelpie real kill 2" in up.stdout
    assert all(str(identity.pid) in up.stdout for identity in processes.values())
    assert _fits(up)

    again = kelpie("up")
    assert again.returncode == 64
    assert "'default' is already up" in again.stderr

    killed = kelpie("kill", "2")
    assert (killed.returncode, killed.stdout) == (0, "Broker 2 was killed.\n")
    assert not processes["2"].alive
    twice = kelpie("kill", "2")
    assert (twice.returncode, twice.stderr) == (64, "kelpie real: broker 2 is not up.\n")

    listed = kelpie("list")
    states = {line.split()[0]: line.split()[1] for line in listed.stdout.splitlines() if "server.log" in line}
    assert states == {"zookeeper": "up", "1": "up", "2": "down"}

    (listed_cluster,) = checked("real", kelpie("list", "--json").stdout)["clusters"]
    assert [node["name"] for node in listed_cluster["nodes"] if not node["up"]] == ["2"]

    started = kelpie("start", "2", "--json")
    assert started.returncode == 0, started.stderr
    (listed_cluster,) = checked("real", started.stdout)["clusters"]
    assert all(node["up"] for node in listed_cluster["nodes"])
    keeper.watch(_processes(state, "default")["2"])

    create = ("--create", "--topic", "hay", "--partitions", "1", "--replication-factor", "2")
    assert kelpie("tool", "kafka-topics", *create).returncode == 0
    assert kelpie("tool", "kafka-topics", "--list").stdout == "hay\n"
    assert "hay" in kelpie("tool", "zookeeper-shell", stdin="ls /brokers/topics\n").stdout
    failed = kelpie("tool", "kafka-topics", "--nonsense")
    assert failed.returncode == 1
    assert "nonsense" in failed.stdout + failed.stderr

    unknown = kelpie("kill", "1", "9")
    assert unknown.returncode == 64
    assert unknown.stderr == "kelpie real: There is no node '9'. Nodes: zookeeper, 1, 2.\n"
    assert processes["1"].alive

    ended = _processes(state, "default")
    down = kelpie("down")
    assert down.returncode == 0, down.stderr
    assert "3 processes ended" in down.stdout
    assert not any(identity.alive for identity in ended.values())
    assert not (state / "real" / "default").exists()


@pytest.mark.real
def test_broker_that_fails_leaves_no_cluster_and_is_quoted(
    kelpie: Kelpie, keeper: Keeper, state: Path
) -> None:
    """The folder with the log is gone, so its end is shown."""
    run = kelpie("up", "--name", "lame", "--version", "0.9.0.1", "--config", "num.io.threads=many")

    assert run.returncode == 1
    assert "num.io.threads" in run.stderr
    assert "Traceback" not in run.stderr
    assert kelpie("list").stdout == "No cluster is up. Start one with: kelpie real up\n"
    assert not (state / "real" / "lame").exists()


@pytest.mark.real
def test_killed_command_leaves_nothing(keeper: Keeper, state: Path, wait_until: Callable[..., None]) -> None:
    """Until it says that the cluster is up, nothing outlives it; and the name is free again."""
    root = state / "real" / "default"
    command = [sys.executable, "-m", "kelpie", "real", "up", "--version", "0.9.0.1"]
    with subprocess.Popen(command, env={**os.environ, "KELPIE_STATE": str(state)}) as up:
        # The broker's log: both servers run, neither is known to serve.
        wait_until((root / "1" / "server.log").exists)
        up.kill()

    wait_until(lambda: not root.exists())


def test_down_spares_strangers(kelpie: Kelpie, state: Path) -> None:
    """After a restart of the machine the numbers in the file belong to others: to this test, say."""
    root = state / "real" / "old"
    root.mkdir(parents=True)
    node = {"name": "1", "kind": "broker", "port": 1, "pid": os.getpid(), "start": "before the flood"}
    document = {"format": 1, "version": "0.9.0.1", "brokers": 1, "config": {}, "jvm_options": []}
    (root / "cluster.json").write_text(json.dumps({**document, "nodes": [node]}))

    down = kelpie("down", "--name", "old")

    assert down.returncode == 0
    assert "0 processes ended" in down.stdout
    assert not root.exists()


@pytest.mark.parametrize("name", ["../up", "/etc", "a/b", "a b", "", ".", "..", "-x", "a\nb", "ä", "x" * 41])
@pytest.mark.parametrize("action", [("up",), ("kill", "1"), ("down",), ("tool", "kafka-topics")])
def test_hostile_names_are_refused(
    action: tuple[str, ...],
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    state: Path,
) -> None:
    """A name becomes a folder that `down` removes."""
    from kelpie.cli import main

    monkeypatch.setenv("KELPIE_STATE", str(state))

    assert main(["real", action[0], f"--name={name}", *action[1:]]) == 64

    assert "cannot name a cluster" in capsys.readouterr().err
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["up", "--version", "1.0"], 64, "no Kafka '1.0' in the catalogue. Known: 4.3.1, 3.9.2,"),
        (["up", "--brokers", "0"], 64, "1 to 16 brokers, not 0"),
        (["up", "--config", "nonsense"], 64, "Write NAME=VALUE"),
        (["up", "--config", "broker.id=3"], 64, "broker.id cannot be set"),
        (["kill", "1"], 1, "No cluster named 'default' is up. Start one with: kelpie real up"),
        (["down"], 1, "No cluster named 'default' is up"),
        (["tool", "kafka-topics", "--list"], 1, "No cluster named 'default' is up"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str],
    status: int,
    words: str,
    *,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    state: Path,
) -> None:
    """One message, no traceback, and within 80 columns."""
    from kelpie.cli import main

    monkeypatch.setenv("KELPIE_STATE", str(state))
    monkeypatch.setenv("COLUMNS", "80")

    assert main(["real", *arguments]) == status

    said = capsys.readouterr().err
    assert words in " ".join(said.split())
    assert all(len(line) <= 80 for line in said.splitlines())


def test_unreadable_state_is_explained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    """A file that was cut off or comes from another version of Kelpie."""
    from kelpie.cli import main

    monkeypatch.setenv("KELPIE_STATE", str(state))
    for name, text in (("torn", '{"format": 1,'), ("later", '{"format": 99}'), ("odd", "[]")):
        (state / "real" / name).mkdir(parents=True)
        (state / "real" / name / "cluster.json").write_text(text)
        assert main(["real", "down", "--name", name]) == 1
        assert "cannot be read" in " ".join(capsys.readouterr().err.split())

    assert main(["real", "list"]) == 0
