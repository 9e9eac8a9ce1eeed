"""Log files that grow, move away, are cut off and come back."""

from pathlib import Path

import pytest

from kelpie.guard.log_files import LogFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.log"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_only_what_is_added_is_read(path: Path) -> None:
    """The end of the file at the start is where this process begins."""
    path.write_text("old\n")
    file = LogFile(path)
    assert file.lines() == []
    append(path, "one\ntwo\nthr")
    assert file.lines() == ["one", "two"]
    append(path, "ee\n")
    assert file.lines() == ["three"]
    file.close()


def test_a_file_that_comes_later_is_read_from_its_start(path: Path) -> None:
    """The process makes it."""
    file = LogFile(path)
    assert file.lines() == []
    path.write_text("one\n")
    assert file.lines() == ["one"]
    file.close()


def test_a_renamed_file_is_read_to_its_end_before_the_new_one(path: Path) -> None:
    """A line that was written just before the rotation counts."""
    path.write_text("")
    file = LogFile(path)
    append(path, "one\n")
    path.rename(path.with_name("app.log.1"))
    append(path.with_name("app.log.1"), "two")
    assert file.lines() == ["one"], "the new file is not there yet"
    path.write_text("three\n")
    assert file.lines() == ["two", "three"]
    file.close()


@pytest.mark.parametrize("after", ["new\n", "new line that is longer than all that was there before\n"])
def test_a_file_that_is_cut_off_is_read_from_its_start(path: Path, after: str) -> None:
    """logrotate's copytruncate; also if the file has grown past the old position before it is looked at."""
    path.write_text("one\ntwo\n")
    file = LogFile(path)
    with path.open("r+") as writing:
        writing.truncate(0)
        writing.write(after)
    assert file.lines() == [after.rstrip("\n")]
    file.close()
