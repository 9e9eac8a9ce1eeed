"""What `kelpie --help` imports. Modules are counted, not time, which tells of the machine."""

import subprocess
import sys

import pytest

_COUNT = """
import sys
from kelpie.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("\\n".join(["modules:", *sys.modules]), file=sys.stderr)
"""
_SLOW = (
    "asyncio",
    "numpy",
    "pyspark",
    "pandas",
    "pyarrow",
    "ssl",
    "socket",
    "json",
    "shtab",
    "logging",
    "difflib",
)


def _modules(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, *words], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stderr.partition("modules:\n")[2].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_no_command(words: list[str]) -> None:
    """All commands together take over a second of CPU to import; names and a line about each are enough."""
    modules = _modules(*words)
    assert "kelpie.cli.overview" in modules
    assert not modules & set(_SLOW)
    packages = {".".join(name.split(".")[:2]) for name in modules if name.startswith("kelpie.")}
    assert packages == {"kelpie.cli", "kelpie.model"}
    assert not modules & {f"kelpie.cli.{name}" for name in ("doctor", "connecting", "lab", "repairing")}
    assert len([name for name in modules if name.startswith("kelpie")]) < 20


def test_the_doctor_imports_readers_of_files_only_for_files() -> None:
    """A look at brokers starts sooner without them: at night, and every minute by a timer."""
    modules = _modules("doctor", "-b", "127.0.0.1:1", "--no-store")
    assert "kelpie.examination" in modules
    assert not {name for name in modules if name.startswith("kelpie.evidence")}


def test_a_command_imports_no_other() -> None:
    """`kelpie explain` needs the rules, and neither a client nor the lab."""
    modules = _modules("explain", "--help")
    assert "kelpie.cli.explain" in modules
    assert not modules & {"kelpie.cli.lab", "kelpie.client.nodes", "kelpie.lab.cluster", "asyncio"}
