"""Every command that prints something for people prints it for programs, as the published schemas say."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import jsonschema
import pytest

from kelpie.cli import main, parser
from kelpie.cli.reference import leaves, schema_files
from kelpie.documents.schemas import BY_HAND, DECLARED
from kelpie.lab import SyncCluster
from kelpie.lab.scenarios import scenarios
from tests.documents import SCHEMAS, checked, validator
from tests.repair.scene import GROUP, a_cluster, commit

LEAVES = {leaf.prog: leaf for leaf in leaves(parser())}
WITHOUT = {
    "kelpie serve",
    "kelpie guard",
    "kelpie pipeline submit",
    "kelpie real store",
    "kelpie real tool",
    "kelpie mcp",
    "kelpie completion",
}
"""docs/schemas/index.md says why."""
ELSEWHERE = {
    "kelpie mappings check": ("tests/repair/test_mappings.py", "mappings-check"),
    "kelpie mappings repair": ("tests/repair/test_mappings.py", "plan"),
    "kelpie migrate-offsets": ("tests/repair/test_migrate_offsets.py", "plan"),
    "kelpie rehome": ("tests/repair/test_cli.py", "plan"),
    "kelpie undo": ("tests/repair/test_cli.py", "plan"),
    "kelpie real up": ("tests/real/test_cli.py", "real"),
    "kelpie real list": ("tests/real/test_cli.py", "real"),
    "kelpie real kill": ("tests/real/test_cli.py", "real"),
    "kelpie real stop": ("tests/real/test_cli.py", "real"),
    "kelpie real start": ("tests/real/test_cli.py", "real"),
    "kelpie real down": ("tests/real/test_cli.py", "real"),
    "kelpie pipeline stream": ("tests/pipeline/spark/test_json.py", "pipeline-run"),
    "kelpie pipeline run": ("tests/pipeline/spark/test_json.py", "pipeline-run"),
}
"""Commands that need a scene, a JVM or Spark: the file that runs them, and the schema that they keep to."""
HOSTILE = "\x1b[31m你好\u202e"
OF_CLUSTER: dict[str, tuple[Sequence[str], int]] = {
    "kelpie doctor": ([], 0),
    "kelpie groups": ([], 0),
    "kelpie where": ([GROUP, HOSTILE], 0),
    "kelpie probe": ([GROUP, "--topic", "orders", "--reset", "earliest"], 0),
    "kelpie peek": (["orders", "0", "3", "--count", "2"], 0),
    "kelpie reset": ([GROUP, "--to-earliest"], 0),
    "kelpie elect": (["orders-0", "__consumer_offsets-0"], 0),
    "kelpie reassign-offsets-topic": (["--replication", "3"], 0),
    "kelpie names": (["--partition", "3", "-n", "2"], 0),
    "kelpie consume": (["--group", "new", "--topic", "orders", "--from-beginning", "--max-messages", "3"], 0),
}
OF_NOTHING: dict[str, tuple[Sequence[str], int]] = {
    "kelpie explain": (["KLP101"], 0),
    "kelpie ack": ([], 0),
    "kelpie lab list": ([], 0),
    "kelpie simulate attribution": (["--seeds", "1", "--scenario", "finder-restart"], 0),
    "kelpie simulate zookeeper-rebalance": (["--seeds", "1", "--members", "2", "--event", "kill+join"], 0),
}
RUN_HERE = {
    *OF_CLUSTER,
    *OF_NOTHING,
    "kelpie collect",
    "kelpie lab up",
    "kelpie lab run",
    "kelpie offsets recover",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncCluster]:
    with a_cluster() as cluster:
        commit(cluster, GROUP, {0: 4, 1: 7})
        commit(cluster, HOSTILE, {0: 1})
        yield cluster


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))


def _schemas(prog: str) -> list[str]:
    return LEAVES[prog].manual.schemas


def test_every_command_has_json_with_a_schema_or_the_page_says_why_not() -> None:
    """Programs should not parse tables. A command with the option is run by a test below, or elsewhere."""
    has_option = {prog for prog, leaf in LEAVES.items() if "--json" in leaf._option_string_actions}
    assert has_option == set(LEAVES) - WITHOUT
    assert {prog for prog, leaf in LEAVES.items() if leaf.manual.schemas} == has_option
    assert RUN_HERE | ELSEWHERE.keys() == has_option
    page = (SCHEMAS / "index.md").read_text(encoding="utf-8")
    reasons = page[page.index("These have no") :]
    assert set(re.findall(r"^\| `(kelpie [a-z ]+)` \|", reasons, re.MULTILINE)) == WITHOUT


@pytest.mark.parametrize(("prog", "place"), ELSEWHERE.items())
def test_commands_that_need_more_are_held_to_their_schema_elsewhere(
    prog: str, place: tuple[str, str]
) -> None:
    """The file is there, and names the schema."""
    path, schema = place
    assert schema in _schemas(prog)
    assert f'checked("{schema}"' in (Path(__file__).parents[2] / path).read_text(encoding="utf-8")


def test_schemas_are_up_to_date_and_each_is_on_the_page() -> None:
    """`python -m kelpie.cli.reference docs` makes them."""
    files = schema_files()
    assert {path.name for path in SCHEMAS.glob("*.json")} == {*files, *(f"{name}.json" for name in BY_HAND)}
    for name, text in files.items():
        assert (SCHEMAS / name).read_text(encoding="utf-8") == text, name
    page = (SCHEMAS / "index.md").read_text(encoding="utf-8")
    assert {name for name in [*files, "doctor.json"] if f"({name})" not in page} == set()


@pytest.mark.parametrize("name", [*DECLARED, *BY_HAND])
def test_a_schema_is_sound_and_used(name: str) -> None:
    """A schema that no command prints is a lie, and one that takes anything is none."""
    jsonschema.Draft202012Validator.check_schema(json.loads((SCHEMAS / f"{name}.json").read_text()))
    assert not validator(name).is_valid({"nonsense": 1})
    assert any(name in leaf.manual.schemas for leaf in LEAVES.values())


@pytest.mark.parametrize("prog", OF_CLUSTER)
def test_what_commands_say_of_a_cluster_keeps_to_its_schema(
    prog: str, cluster: SyncCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """With a group whose name would drive a terminal."""
    words, status = OF_CLUSTER[prog]
    command = [*prog.split()[1:], *words, "-b", cluster.bootstrap_servers, "--timeout", "20", "--json"]
    assert main(command) == status
    out = capfd.readouterr().out
    (schema,) = _schemas(prog)
    documents = out.splitlines() if schema == "consume" else [out]
    assert documents
    for text in documents:
        checked(schema, text)


@pytest.mark.parametrize("prog", OF_NOTHING)
def test_what_commands_say_without_a_cluster_keeps_to_its_schema(
    prog: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for those that ask nobody."""
    words, status = OF_NOTHING[prog]
    assert main([*prog.split()[1:], *words, "--json"]) == status
    (schema,) = _schemas(prog)
    checked(schema, capsys.readouterr().out)


def test_groups_by_name_and_the_numbers_of_consume_keep_to_their_schemas(
    cluster: SyncCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """Options change what is printed."""
    place = ["-b", cluster.bootstrap_servers, "--timeout", "20", "--json"]
    assert main(["groups", GROUP, *place]) == 0
    (group,) = checked("groups", capfd.readouterr().out)["groups"]
    assert [row["offset"] for row in group["partitions"]] == [4, 7]
    words = ["--group", "counted", "--topic", "orders", "--from-beginning", "--max-messages", "5", "--count"]
    assert main(["consume", *words, *place]) == 0
    assert checked("consume", capfd.readouterr().out)["total"] == 5


def test_an_acknowledgement_prints_the_list_as_it_is_then(
    capsys: pytest.CaptureFixture[str], cluster: SyncCluster
) -> None:
    """After a change, too: a program need not ask twice."""
    place = ["-b", cluster.bootstrap_servers]
    assert main(["doctor", *place, "--timeout", "20"]) == 0
    capsys.readouterr()
    words = [GROUP, "KLP309", "--until", "3d", "--why", "known", "--severity", "warning", *place]
    assert main(["ack", *words, "--json"]) == 0
    (rows,) = checked("ack", capsys.readouterr().out)["clusters"].values()
    assert [(row["group"], row["code"]) for row in rows] == [(GROUP, "KLP309")]
    assert main(["ack", GROUP, "KLP309", "--remove", *place, "--json"]) == 0
    assert checked("ack", capsys.readouterr().out)["clusters"] == {}


def test_rounds_of_collect_are_lines_and_disks_give_offsets(
    cluster: SyncCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What one command writes, another reads."""
    words = ["collect", "-b", cluster.bootstrap_servers, "--into", str(tmp_path / "landing"), "--for", "1ms"]
    assert main([*words, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert checked("collect", line)["groups"] >= 2
    assert main(["offsets", "recover", str(tmp_path / "landing"), "--json"]) == 0
    rows = checked("offsets-recover", capsys.readouterr().out)
    assert {row["group"] for row in rows} >= {GROUP, HOSTILE}


def test_advice_keeps_to_the_same_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """--advise prints another document."""
    words = ["--advise", "--members", "2", "--seeds", "1", "--event", "kill+join"]
    assert main(["simulate", "zookeeper-rebalance", *words, "--json"]) == 0
    assert "as_it_is" in checked("simulate-rebalance", capsys.readouterr().out)


def test_a_lab_cluster_says_where_it_is(wait_until: Callable[..., None]) -> None:
    """A script starts it, reads one document, and works with it."""
    command = [sys.executable, "-m", "kelpie", "lab", "up", "--brokers", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        document = checked("lab-up", "".join(lines))
        assert main(["where", "anybody", "-b", document["bootstrap"]]) == 3  # It has no offsets topic yet.
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: process.poll() is not None)
    assert process.returncode == 0


def test_a_scenario_is_told_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """One document, whatever happens in between."""
    name = "coordinator-loading"
    assert name in scenarios()
    assert main(["lab", "run", name, "--json"]) == 0
    document = checked("lab-run", capsys.readouterr().out)
    assert document["told"]
    assert document["failures"] == []
