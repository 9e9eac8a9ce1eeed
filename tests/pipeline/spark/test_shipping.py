"""Kelpie in one file, as executors get it."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from kelpie.pipeline.spark import shipping
from kelpie.places import place_of

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path / "cache"))


def test_tasks_work_from_the_zip(tmp_path: Path) -> None:
    """Modules, data beside them, and compiled code, which is kept where the next run finds it."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import kelpie; assert kelpie.__file__.startswith(sys.argv[1]), kelpie.__file__\n"
        "from kelpie.pipeline.diagnosis import judging\n"
        "from kelpie.pipeline.spark import preflight\n"
        "from kelpie.pipeline.sources.logs import intake as logs\n"
        "from kelpie.pipeline.sources.scrapes import intake as scrapes\n"
        "from kelpie.pipeline.sources.segments import task as segments\n"
        "from kelpie.pipeline.sources.snapshots import outputs\n"
        "from kelpie.pipeline.sources.topic import task as topic\n"
        "from kelpie.pipeline.decoding import checksums\n"
        "from importlib import resources\n"
        "assert resources.files('kelpie.pipeline.spark').joinpath('log4j2.properties').read_text()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(shipping.package())],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_package_is_made_once() -> None:
    """And again when the code has changed, under another name: clusters keep files by name."""
    first = shipping.package()
    made = first.stat().st_mtime_ns
    assert shipping.package() == first
    assert first.stat().st_mtime_ns == made
    assert [path.name for path in first.parent.iterdir()] == ["kelpie.zip"]


@pytest.mark.parametrize("change", ["content", "extra", "mode", "rubbish"])
def test_a_package_that_somebody_has_changed_is_made_again(change: str) -> None:
    """Executors run what is in it."""
    package = shipping.package()
    made = package.read_bytes()
    if change == "mode":
        package.chmod(0o666)
        with zipfile.ZipFile(package, "a") as target:
            target.writestr("kelpie/more.py", "")
    elif change == "rubbish":
        package.write_bytes(b"PK rubbish")
    else:
        with zipfile.ZipFile(package) as source:
            files = {name: source.read(name) for name in source.namelist()}
        files["kelpie/__main__.py" if change == "content" else "kelpie/more.py"] = b"raise SystemExit"
        with zipfile.ZipFile(package, "w") as target:
            for name, content in files.items():
                target.writestr(name, content)
    assert shipping.package() == package
    assert package.read_bytes() == made


def test_package_is_made_also_where_nothing_may_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service account without a home."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert shipping.package().is_file()


def test_everything_that_tasks_need_is_asked_for() -> None:
    """A dependency that pyproject.toml names and executors lack must be told, not found out."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["pipeline"]]
    names = {re.split(r"[<>=\[ ]", line)[0].replace("-", "_") for line in declared}
    anywhere = shipping.needed_for([place_of("hdfs://host:8020/tables"), place_of("s3://bucket/tables")])
    assert set(anywhere) == names - {"pyspark", "cryptography", "shtab", "typing_extensions"}
    assert set(shipping.needed_for([PROJECT])) == set(shipping.NEEDED)


@pytest.mark.parametrize(
    ("archives", "python"),
    [
        (None, sys.executable),
        ("/x/env.tar.gz#environment", "./environment/bin/python"),
        ("hdfs:///x/env.tar.gz", "./env.tar.gz/bin/python"),
    ],
)
def test_python_comes_with_the_environment(archives: str | None, python: str) -> None:
    """Spark unpacks it under the name behind the #, or its own."""
    assert shipping.python_of(archives) == python
