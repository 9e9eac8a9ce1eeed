"""The wheel, installed elsewhere, works without the tree it was built from."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIMIT_S = 300


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    [made] = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of its own with the wheel in it, and of all other packages only those it asks for.

    They are linked from this environment, so that the test needs no registry; pyspark is not among them.
    """
    home = tmp_path_factory.mktemp("elsewhere")
    venv.create(home, with_pip=False)
    made = home / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(made),
        "install",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(pip, check=True, capture_output=True, timeout=LIMIT_S)
    [site] = home.glob("lib/python*/site-packages")
    here = Path(pytest.__file__).parent.parent
    for package in ("aiokafka", "cramjam", "async_timeout", "packaging", "typing_extensions.py"):
        (site / package).symlink_to(here / package)
    return made


def run(*command: Path | str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=Path(command[0]).parent,
        env=os.environ | environment,
    )


def test_the_codec_works_when_installed_elsewhere(python: Path) -> None:
    """Lazy imports and data files are what a wheel forgets."""
    code = (
        "from kelpie.wire.apis import NAMES, api\n"
        "from kelpie.wire.compiler import decode, encode\n"
        "for key in NAMES: api(key)\n"
        "heartbeat = api(12).request(group_id='g', generation_id=1, member_id='m')\n"
        "assert decode(api(12).request, 4, encode(heartbeat, 4)) == heartbeat\n"
        "import kelpie.wire.records, kelpie.wire.offsets_topic, kelpie.wire.transaction_state\n"
        "print(kelpie.__file__)\n"
    )
    done = run(python, "-c", code)
    assert done.returncode == 0, done.stderr
    assert str(python.parent.parent) in done.stdout


def test_the_command_works_when_installed_elsewhere(python: Path) -> None:
    """`kelpie --help` without Spark."""
    done = run(python.with_name("kelpie"), "--help")
    assert done.returncode == 0, done.stderr
    assert "usage: kelpie" in done.stdout


def test_without_spark_real_kafka_says_what_is_missing(python: Path, tmp_path: Path) -> None:
    """Ivy comes with PySpark; without it a person must hear what to install."""
    folders = {"KELPIE_CACHE": str(tmp_path / "cache"), "KELPIE_STATE": str(tmp_path / "state")}
    done = run(python.with_name("kelpie"), "real", "up", "--version", "4.3.1", **folders)
    assert done.returncode != 0
    assert "kelpie-kafka[pipeline]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_wheel_carries_types_and_licence(wheel: Path) -> None:
    """`py.typed` makes the annotations count for users."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "kelpie/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "bench/")) for name in names)
