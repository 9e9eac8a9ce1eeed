"""Files on a real S3 server."""

import math
from pathlib import Path

import pytest

from kelpie.places import RemotePath, place_of, stores
from kelpie.places.place import newest_change
from kelpie.real.s3 import RealS3
from tests.places.remote_places import files_are_found, one_writer_wins

pytestmark = pytest.mark.real


def test_of_several_writers_of_a_key_one_wins(s3: RemotePath) -> None:
    """The journal rests on it: two runs must not take the same number."""
    one_writer_wins(s3)


def test_files_are_written_whole_and_read_by_ranges(s3: RemotePath, tmp_path: Path) -> None:
    """As evidence and tables need it."""
    files_are_found(s3, tmp_path)


def test_refused_secret_is_told_without_it(
    s3: RemotePath, real_s3: RealS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors are logged; the text names the place and says what is wrong."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-wrong-secret")
    stores.forget()
    with pytest.raises(PermissionError, match="refused the key") as refused:
        (s3 / "file").write_bytes(b"x")
    stores.forget()
    text = str(refused.value)
    assert str(s3) in text
    for hidden in ("a-wrong-secret", real_s3.environment["AWS_ACCESS_KEY_ID"]):
        assert hidden not in text


def test_bucket_that_is_not_there_is_told(s3: RemotePath) -> None:
    """In one line."""
    with pytest.raises(OSError, match="s3a://no-such-bucket/") as missing:
        (place_of("s3://no-such-bucket/tables") / "file").write_bytes(b"x")
    assert "\n" not in str(missing.value)


def test_a_folder_whose_files_are_gone_is_never_old(s3: RemotePath) -> None:
    """Some servers still show folders that Spark has emptied; the sweep must not stumble over them."""
    file = s3 / "_written-1" / "part.parquet"
    file.write_bytes(b"x")
    assert newest_change(file.parent) == file.stat().st_mtime
    file.unlink()
    assert newest_change(file.parent) == math.inf
