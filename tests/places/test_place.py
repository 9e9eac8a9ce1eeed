"""What a person writes as a place, and where the settings of S3 come from."""

import os
from pathlib import Path

import pytest

from kelpie.places import PlaceRefused, RemotePath, credentials, place_of
from kelpie.places.place import for_tables


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("tables", Path("tables")),
        ("/mnt/a:b", Path("/mnt/a:b")),
        ("file:///mnt/my%20tables", Path("/mnt/my tables")),
        ("file:/mnt/tables", Path("/mnt/tables")),
        ("hdfs://nn:8020/user/k/", RemotePath("hdfs", "nn:8020", "user/k")),
        ("s3://bucket/a//b", RemotePath("s3a", "bucket", "a/b")),
        ("S3A://bucket", RemotePath("s3a", "bucket")),
        (
            "abfss://box@account.dfs.core.windows.net/t",
            RemotePath("abfss", "box@account.dfs.core.windows.net", "t"),
        ),
    ],
)
def test_text_names_a_place(text: str, place: Path | RemotePath) -> None:
    """A path stays a Path: nothing of the other file systems is loaded for it."""
    assert place_of(text) == place


@pytest.mark.parametrize("name", ["a b%20c#d?e", "ä/[1]*", "x=1"])
def test_text_of_a_place_names_it_again(name: str) -> None:
    """Tasks get places as texts; names of evidence may hold anything."""
    place = place_of("s3://bucket/in") / name
    assert place_of(str(place)) == place


@pytest.mark.parametrize("text", ["ftp://host/a", "https://host/a", "s3:///a"])
def test_what_names_no_place_is_refused(text: str) -> None:
    """Before Spark starts, and with the forms that can be written."""
    with pytest.raises(PlaceRefused, match="Write a path"):
        place_of(text)


def test_password_in_a_url_is_refused_and_not_repeated() -> None:
    """Errors are logged, and command lines are seen by others."""
    with pytest.raises(PlaceRefused) as refused:
        place_of("s3://AKIAKEY:hunter2@bucket/tables")
    assert "hunter2" not in str(refused.value)
    assert "AKIAKEY" not in str(refused.value)


def test_tables_are_refused_where_readers_would_not_find_them() -> None:
    """Delta's readers differ in what they escape in URLs."""
    with pytest.raises(PlaceRefused, match="'%'"):
        for_tables(place_of("s3://bucket/my%20tables"))
    assert for_tables(Path("my%20tables")) == Path("my%20tables").absolute()


def test_environment_counts_before_spark_and_spark_before_hadoop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is for users of Spark and of deltalake; a run must not mix two accounts silently."""
    (tmp_path / "core-site.xml").write_text(
        "<configuration>"
        "<property><name>fs.s3a.access.key</name><value>of-hadoop</value></property>"
        "<property><name>fs.s3a.secret.key</name><value>of-hadoop</value></property>"
        "<property><name>fs.s3a.endpoint</name><value>s3.example.org</value></property>"
        "</configuration>"
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "of-the-environment")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    credentials.adopt(
        {
            "spark.hadoop.fs.s3a.access.key": "of-spark",
            "spark.hadoop.fs.s3a.endpoint.region": "of-spark",
        }
    )
    assert os.environ["AWS_REGION"] == "of-the-environment"
    assert os.environ["AWS_ACCESS_KEY_ID"] == "of-spark"
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == "of-hadoop"
    assert os.environ["AWS_ENDPOINT_URL"] == "https://s3.example.org"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
