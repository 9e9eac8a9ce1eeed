"""Files on a real HDFS."""

from pathlib import Path

import pytest

from kelpie.places import RemotePath, place_of
from kelpie.real import ports
from tests.places.remote_places import files_are_found, one_writer_wins


@pytest.mark.real
@pytest.mark.wide
def test_of_several_writers_of_a_name_one_wins(hdfs: RemotePath) -> None:
    """The journal rests on it: two runs must not take the same number. Drafts of the losers are gone."""
    one_writer_wins(hdfs)


@pytest.mark.real
@pytest.mark.wide
def test_files_are_written_whole_and_read_by_ranges(hdfs: RemotePath, tmp_path: Path) -> None:
    """As evidence and tables need it."""
    files_are_found(hdfs, tmp_path)


def test_name_node_that_is_not_there_is_told_at_once() -> None:
    """The client alone would try for minutes."""
    (port,) = ports.free(1)
    with pytest.raises(OSError, match=f"No NameNode at hdfs://127.0.0.1:{port}"):
        place_of(f"hdfs://127.0.0.1:{port}/tables").exists()


def test_name_without_a_port_needs_hadoop_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name service is known by Hadoop's files only."""
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(OSError, match="HADOOP_CONF_DIR"):
        place_of("hdfs://production/tables").exists()
