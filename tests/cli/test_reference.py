"""docs/commands.md, docs/exit-codes.md and docs/configuration.md say what the program does."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelpie.cli import parser
from kelpie.cli.environment import VARIABLES
from kelpie.cli.reference import commands_page, exit_codes_page, leaves, with_variables
from kelpie.client.profiles import KEYS

ROOT = Path(__file__).parents[2]
DOCS, SOURCES = ROOT / "docs", ROOT / "src" / "kelpie"
_OWN = re.compile(r"\bKELPIE_[A-Z_]+\b")
_ANEW = "python -m kelpie.cli.reference docs"


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_pages_are_up_to_date() -> None:
    """An option that changes, changes its page in the same commit."""
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == commands_page(), _ANEW
    assert (DOCS / "exit-codes.md").read_text(encoding="utf-8") == exit_codes_page(), _ANEW
    configuration = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert configuration == with_variables(configuration), _ANEW


def test_every_option_of_every_command_is_in_the_page() -> None:
    """The page is made of the parsers; this looks at its text."""
    sections = (DOCS / "commands.md").read_text(encoding="utf-8").split("\n## ")
    by_name = {section.partition("\n")[0]: section for section in sections[1:]}
    for leaf in leaves(parser()):
        section = by_name[leaf.prog]
        options = [
            name for action in leaf._actions for name in action.option_strings if name not in ("-h", "--help")
        ]
        assert [name for name in options if f"{name}" not in section] == []


def test_every_variable_that_is_read_is_in_the_page_and_no_other() -> None:
    """A variable that nobody knows of is a trap; one that means nothing is another."""
    named = {
        name
        for path in SOURCES.rglob("*.py")
        if path.name != "environment.py"
        for name in _OWN.findall(path.read_text(encoding="utf-8"))
    }
    imported = {
        "KELPIE_BOOTSTRAP",
        "KELPIE_COMMAND_CONFIG",
        "KELPIE_NOTIFY_HEADER",
    }  # Read by the names that environment.py gives them.
    own = {name for name in VARIABLES if name.startswith("KELPIE_")}
    assert named | imported == own
    assert set(_OWN.findall((DOCS / "configuration.md").read_text(encoding="utf-8"))) == own


def test_variables_of_others_are_in_the_page_too() -> None:
    """Wherever the source reads the environment by a literal name."""
    found = {
        name for path in SOURCES.rglob("*.py") for name in _read(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {"NO_COLOR", "JAVA_HOME", "COLUMNS"} <= found
    assert found <= set(VARIABLES)


def _read(module: ast.Module) -> Iterator[str]:
    """Names in os.environ.get("NAME"), os.environ.setdefault("NAME", …) and os.environ["NAME"]."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            place, words = node.func.value, node.args[:1]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            place, words = node.value, [node.slice]
        else:
            continue
        if ast.unparse(place) == "os.environ":
            yield from (
                word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)
            )


def test_every_key_of_a_profile_is_in_the_page_and_no_other() -> None:
    """The example of a profile shows all that may stand in one."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)
    (profile,) = tomllib.loads(example).values()
    assert set(profile) == set(KEYS)


def test_every_client_property_that_counts_is_in_the_page() -> None:
    """And no property that does not."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (SOURCES / "client").rglob("*.py"))
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    table = page[page.index("## Client properties") : page.index("## Environment")]
    told = set(re.findall(r"`([a-z]+\.[a-z.]+)`", table))
    read = set(re.findall(r'"((?:sasl|ssl|security|client|bootstrap|request|socket)\.[a-z.]+)"', sources))
    assert told <= read
    assert read - told <= {"ssl.keystore", "ssl.truststore"}  # Beginnings of names, in messages.


def test_no_property_is_taken_that_the_page_does_not_name() -> None:
    """Whatever it begins with: properties are taken from the file by their literal names, in one way."""
    taken = {
        name
        for path in (SOURCES / "client").rglob("*.py")
        for name in re.findall(
            r'\.(?:take|secret|number)\(\s*"([a-z]+(?:\.[a-z]+)+)"', path.read_text(encoding="utf-8")
        )
    }
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert len(taken) >= 10
    assert {name for name in taken if f"`{name}`" not in page} == set()


def test_exit_statuses_have_one_home() -> None:
    """A number in a command would be a second one."""
    bare = re.compile(
        r"status\s*=\s*\d|\breturn [1-9]\d*$|CommandError\([^\n]*, \d+\)|_Exit\(\d|sys\.exit\(\d", re.M
    )
    found = {
        path.name: bare.findall(path.read_text(encoding="utf-8")) for path in (SOURCES / "cli").glob("*.py")
    }
    assert {name: numbers for name, numbers in found.items() if numbers} == {}
