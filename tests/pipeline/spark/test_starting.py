"""What makes Spark start quickly on one machine: classes that Java keeps, workers that have the decoder."""

import os
import re
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.spark import class_archive
from kelpie.pipeline.spark.session import _SETTINGS, AUTHENTICATE, is_open_cluster, open_session
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


@pytest.mark.parametrize(
    ("master", "setting", "is_open"),
    [
        ("local[2]", None, False),
        ("spark://127.0.0.1:7077", None, False),
        ("spark://spark-1:7077", None, True),
        ("spark://spark-1:7077", "false", True),
        ("spark://spark-1:7077", "true", False),
        ("yarn", None, True),
        ("k8s://https://host:6443", "True", False),
    ],
)
def test_a_cluster_that_takes_calls_from_anybody_is_told(
    master: str, setting: str | None, *, is_open: bool
) -> None:
    """Whoever reaches it runs code there."""

    class Context:
        def __init__(self) -> None:
            self.master = master

        def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's word.
            return {} if setting is None else {AUTHENTICATE: setting}

    assert is_open_cluster(Context()) is is_open  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config",
        "kafka.ssl.keystore.password",
        "kafka.ssl.key.password",
        "kafka.sasl.oauthbearer.client.credentials.client.secret",
        "kafka.sasl.oauthbearer.assertion.private.key.passphrase",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.azure.account.key.lake.blob.core.windows.net",
        "spark.hadoop.fs.azure.sas.tables.lake.blob.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
    ],
)
def test_options_with_passwords_are_not_shown(name: str) -> None:
    """In Spark's pages, event logs and plans. Its own pattern does not know JAAS, nor keys of all stores."""
    assert re.search(_SETTINGS["spark.redaction.regex"], name)
    assert re.search(_SETTINGS["spark.sql.redaction.options.regex"], name)
    text = (
        'Relation [kafka.sasl.jaas.config=org.x.PlainLoginModule required username="a" password="hunter2";]'
    )
    assert "hunter2" not in re.sub(_SETTINGS["spark.redaction.string.regex"], "***", text)


def test_workers_begin_with_the_decoder_loaded(spark: SparkSession) -> None:
    """Each of them would else take a second to load it."""
    modules = {"kelpie.pipeline.sources.segments.task", "kelpie.pipeline.sources.logs.task"}
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: modules <= set(sys.modules)).collect()
    assert found == [True]
