"""docs/python.md: its examples run as they stand, and its table has every command and every function."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kelpie
from kelpie import api
from kelpie.cli import parser
from kelpie.cli.reference import leaves
from tests.repair.scene import a_cluster, commit

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
ADDRESS = '"localhost:9092"'
ROWS = dict(re.findall(r"^\| `(kelpie [a-z -]+)` \| (.+) \|$", TEXT, re.MULTILINE))
EXPECTED = (
    "notice KLP",
    "1 group; partition 5 healthy: yes",
    "['anybody', 'billing']",
    "if broker 1 dies, these stop:",
    "new: [] gone: 0",
    "a consumer gets to its next record: True",
    "undone",
    "billing orders-0 4",
    "as expected",
    "127.0.0.1:1",
)
"""A piece of what each example prints, in the order of the page."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with a_cluster() as cluster:
        commit(cluster, "billing", {0: 4, 1: 7})
        yield cluster.bootstrap_servers


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path / "state"))


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_an_example_runs_as_it_stands(
    number: int, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """People paste them. Addresses are those of a cluster of the lab."""
    assert len(EXAMPLES) == len(EXPECTED)
    for _ in kelpie.collect_rounds(bootstrap, "incident", for_s=0.001):
        pass
    example = EXAMPLES[number].replace(ADDRESS, repr(bootstrap))
    exec(compile(example, f"{DOCUMENT}, example {number}", "exec"), {})
    assert EXPECTED[number] in capsys.readouterr().out


def test_every_command_has_its_function_or_a_reason() -> None:
    """What a command can, a program can."""
    assert list(ROWS) == [leaf.prog for leaf in leaves(parser())]
    for command, cell in ROWS.items():
        names = re.findall(r"`(\w+)`", cell)
        assert names or cell.startswith("none: "), command
        assert [name for name in names if name not in api.__all__] == [], command


def test_every_function_is_on_the_page() -> None:
    """A function that is not explained is not offered."""
    functions = [*api.COROUTINES, *api.ITERATORS, *api.THREADED, "explain", "rules", "names", "scenarios"]
    assert [name for name in functions if not re.search(rf"\b{name}\b", TEXT)] == []
