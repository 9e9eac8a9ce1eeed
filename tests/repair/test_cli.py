"""The repairing commands as a person uses them."""

import json
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster
from kelpie.observations import OFFSETS_TOPIC
from tests.documents import checked
from tests.repair.scene import GROUP, committed, strike


class Said:
    """Runs commands, and keeps what they say."""

    def __init__(self, cluster: SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
        self._cluster, self._capsys = cluster, capsys
        self.out = self.err = ""

    def run(self, command: str, *arguments: str) -> int:
        status = main([command, "-b", self._cluster.bootstrap_servers, "--timeout", "5", *arguments])
        self.out, self.err = self._capsys.readouterr()
        if "--json" not in arguments:
            # A path or an address may be longer than a line; nothing else is.
            lines = [line.removesuffix("\\") for line in (self.out + self.err).splitlines()]
            assert [line for line in lines if len(line) > 80 and len(line.split()) > 1] == []
        return status


@pytest.fixture
def said(cluster: SyncCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    monkeypatch.setenv("COLUMNS", "80")  # As on a terminal of that width.
    return Said(cluster, capsys)


def test_rehome_prints_its_plan_and_does_it_when_told(
    cluster: SyncCluster, said: Said, tmp_path: Path
) -> None:
    """The whole of it: plan, apply, the line to change, again, undo."""
    disks = str(strike(cluster, GROUP, tmp_path / "disks"))
    assert said.run("rehome", GROUP, "--offsets-from", disks) == 0
    assert said.out.endswith("Nothing was changed. To do it, run the same command with --apply.\n")
    assert said.run("rehome", GROUP, "--offsets-from", disks, "--json") == 0
    name = checked("plan", said.out)["details"]["new_name"]
    assert said.run("rehome", GROUP, "--offsets-from", disks, "--apply") == 0, said.err
    assert f"group.id={name}" in said.out
    assert said.out.endswith("\nDone.\n")
    assert committed(cluster, name) == {0: 4, 1: 7}
    assert said.run("rehome", GROUP, "--offsets-from", disks, "--apply") == 0
    assert "there is nothing left" in said.out
    assert said.run("undo", "--list", "--json") == 0
    (noted,) = checked("undo-list", said.out)
    assert (noted["command"], noted["subject"], noted["state"]) == ("rehome", name, "can be undone")
    assert said.run("undo", noted["id"], "--apply", "--json") == 0
    assert checked("plan", said.out)["applied"] is True
    assert committed(cluster, name) == {}


def test_reset_exports_what_it_would_do(cluster: SyncCluster, said: Said, tmp_path: Path) -> None:
    """A file to look at, or to hand to Kafka's own tool; the cluster is not touched."""
    file = tmp_path / "new.csv"
    assert said.run("reset", GROUP, "--shift-by", "-2", "--export", str(file)) == 0
    assert file.read_text() == "orders,0,2\norders,1,5\n"
    assert committed(cluster, GROUP) == {0: 4, 1: 7}
    assert said.run("reset", GROUP, "--from-file", str(file), "--apply") == 0
    assert committed(cluster, GROUP) == {0: 2, 1: 5}
    assert (
        said.run("reset", GROUP, "--to-datetime", "1999-01-01T00:00:00", "--topic", "orders:0", "--json") == 0
    )
    assert checked("plan", said.out)["details"]["offsets"][0]["offset"] == 0
    assert said.run("reset", GROUP, "--to-last-known") == 0
    assert "nothing left" in said.out


def test_reassign_prints_the_json_of_kafkas_tool(cluster: SyncCluster, said: Said, tmp_path: Path) -> None:
    """So that whoever trusts only that tool can use it."""
    file = tmp_path / "moves.json"
    assert said.run("reassign-offsets-topic", "--export", str(file)) == 0
    moves = json.loads(file.read_text())["partitions"]
    assert {len(it["replicas"]) for it in moves} == {3}
    assert said.run("reassign-offsets-topic", "--apply", "--wait", "30") == 0
    assert all(len(it["isr"]) == 3 for it in cluster.describe()["topics"][OFFSETS_TOPIC])
    assert said.run("reassign-offsets-topic", "--cancel") == 0
    assert "Nothing is moving." in said.out


def test_elect_says_what_would_be_lost(cluster: SyncCluster, said: Said) -> None:
    """And is refused where there is nothing to elect."""
    assert said.run("elect", "orders-0") == 0
    assert "leads it already" in said.out
    for node in cluster.node_ids[1:]:
        cluster.kill(node)
    dead = next(it for it in cluster.describe()["topics"][OFFSETS_TOPIC] if 1 not in it["replicas"])
    assert said.run("elect", f"{OFFSETS_TOPIC}-{dead['partition']}", "--unclean", "--apply") == 1
    assert "This cannot be done now" in said.out
    assert "Nothing was changed." in said.out


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["rehome", "nobody"], 1, "No committed offsets of group nobody"),
        (["undo"], 64, "Name the change that is to be undone"),
        (["undo", "nonesuch"], 1, "No record on this machine has the id 'nonesuch'"),
        (["reset", GROUP, "--from-file", "no-such.csv"], 1, "no-such.csv cannot be read"),
        (
            ["reset", GROUP, "--to-last-known", "no-such-folder"],
            1,
            "There is no file or folder no-such-folder",
        ),
        (["elect", "orders-9"], 1, "There is no partition orders-9"),
        (
            ["elect", "orders-0", "--evidence", "no-such-folder"],
            1,
            "There is no file or folder no-such-folder",
        ),
    ],
)
def test_mistakes_get_one_clear_sentence(
    said: Said, arguments: list[str], status: int, complaint: str
) -> None:
    """No traceback, on stderr, wrapped."""
    assert said.run(*arguments) == status
    assert complaint in " ".join(said.err.split())


def test_a_cluster_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Within the time limit."""
    assert main(["rehome", "-b", "127.0.0.1:1", "--timeout", "1", GROUP]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err
