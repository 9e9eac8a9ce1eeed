"""What makes Spark start quickly on one machine: classes that Java keeps."""

import os
from pathlib import Path

import pytest

from kelpie.pipeline.spark import class_archive
from kelpie.pipeline.spark.session import open_session
from kelpie.real.cluster_errors import Unavailable


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "jars"
    folder.mkdir()
    return folder


def path_in(options: str) -> Path:
    return Path(options.rpartition("=")[2].strip('"'))


def test_the_first_run_keeps_classes_and_later_ones_use_them(jars: Path) -> None:
    """Only one makes the archive, for that takes a while; who comes meanwhile does without."""
    assert class_archive.options(jars, make=False) == ""
    first = class_archive.options(jars, make=True)
    assert "ArchiveClassesAtExit" in first
    assert class_archive.options(jars, make=True) == ""
    path_in(first).touch()
    later = class_archive.options(jars, make=False)
    assert "SharedArchiveFile" in later
    assert path_in(later) == path_in(first)


def test_another_spark_has_classes_of_its_own(jars: Path) -> None:
    """Java would refuse an archive of others, and never get one."""
    first = path_in(class_archive.options(jars, make=True))
    os.utime(jars, (1, 1))
    assert path_in(class_archive.options(jars, make=True)) != first


def test_archives_do_not_pile_up(jars: Path) -> None:
    """A Java is updated every few months."""
    for moment in range(1, 9):
        os.utime(jars, (moment, moment))
        made = path_in(class_archive.options(jars, make=True))
        made.touch()
        os.utime(made, (moment, moment))
    assert len(list(made.parent.glob("*.jsa"))) == 4
    assert made.exists()


def test_who_may_keep_nothing_starts_without(
    jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user without a home, or with one that cannot be written."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("KELPIE_CACHE", str(tmp_path / "file"))
    assert class_archive.options(jars, make=True) == ""


def test_classes_that_others_may_have_written_are_not_used(jars: Path) -> None:
    """An archive of classes is code."""
    made = path_in(class_archive.options(jars, make=True))
    made.touch()
    assert class_archive.options(jars, make=False)
    made.chmod(0o666)
    assert class_archive.options(jars, make=True) == ""
    made.chmod(0o644)
    made.parent.chmod(0o777)
    assert class_archive.options(jars, make=True) == ""


def test_spark_is_not_started_with_a_cache_that_others_may_write_to(jars: Path, tmp_path: Path) -> None:
    """The message comes before Java does."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(Unavailable, match=r"can be written by others \(mode 0777\).*chmod -R go-w"):
        open_session()
