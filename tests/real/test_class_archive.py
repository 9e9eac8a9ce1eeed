"""Classes that Java keeps for later starts, with a small program: the Ivy in PySpark's wheel."""

import os
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kelpie.real import class_archive, java, locks
from kelpie.real.cluster_errors import Unavailable

MAIN = "org.apache.ivy.Main"


@pytest.fixture
def libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, available: Callable[[], AbstractContextManager[None]]
) -> Path:
    """A folder with one jar, and an empty cache."""
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path / "cache"))
    folder, lists = tmp_path / "libraries", tmp_path / "lists"
    folder.mkdir()
    lists.mkdir()
    with available():
        jars = java.pyspark_jars()
        if jars is None:
            raise Unavailable("PySpark is not installed.")
        (ivy,) = jars.glob("ivy-*.jar")
        (folder / ivy.name).write_bytes(ivy.read_bytes())
    return folder


@pytest.fixture
def lists(libraries: Path) -> Path:
    return libraries.with_name("lists")


def run(libraries: Path, *options: str) -> str:
    command = java.command(f"{libraries}/*", MAIN, heap_mb=64, options=options)
    return subprocess.run([*command, "-version"], capture_output=True, text=True, check=True).stdout


def test_classes_of_one_start_are_mapped_at_the_next(libraries: Path, lists: Path) -> None:
    """The point of it: Java says where each class came from."""
    assert class_archive.options(libraries) == ()
    said = run(libraries, *class_archive.recording(lists))
    class_archive.make(libraries, lists)

    loaded = run(libraries, *class_archive.options(libraries), "-Xlog:class+load")

    assert said.strip()
    assert said in loaded, "the program does the same"
    (line,) = [line for line in loaded.splitlines() if f" {MAIN} source: " in line]
    assert line.endswith("source: shared objects file")


def test_an_archive_that_cannot_be_made_is_done_without(libraries: Path, lists: Path) -> None:
    """Nothing depends on it: not on the lists, not on another process that is about it, not on a folder."""
    (lists / "pid1.classes").write_text("no.such/Class id: x\n")
    with locks.held(_path(libraries).with_suffix(".lock"), limit_s=0, purpose="testing"):
        class_archive.make(libraries, lists)
    assert class_archive.options(libraries) == ()
    class_archive.make(libraries, lists.with_name("nowhere"))
    assert class_archive.options(libraries) == ()


def test_who_may_keep_nothing_starts_without(
    libraries: Path, lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user without a home, or with one that cannot be written."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path / "file"))
    class_archive.make(libraries, lists)
    assert class_archive.options(libraries) == ()


def test_other_jars_have_an_archive_of_their_own(libraries: Path) -> None:
    """Java would refuse that of others, and never get one."""
    first = _path(libraries)
    os.utime(libraries, (1, 1))
    assert _path(libraries) != first


def _path(libraries: Path) -> Path:
    path = class_archive.archive_of(libraries, "kafka-classes")
    assert path is not None
    return path
