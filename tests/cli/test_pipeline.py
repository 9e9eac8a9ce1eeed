"""kelpie pipeline, as far as it goes without Spark: what it refuses, what it prints, what it would submit."""

import io
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.cli.pipeline_progress import ProgressLine
from kelpie.cli.pipeline_summary import render
from kelpie.pipeline.summary import Summary
from kelpie.real import ports


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    folder = tmp_path / "evidence"
    folder.mkdir()
    (folder / "server.log").write_text("nothing\n")
    return folder


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    status = main(["pipeline", *map(str, words)])
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return status, said.err


def test_what_is_not_there_is_named(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before Spark is started, which takes longer than reading the message."""
    status, told = refused(capsys, "run", "--from", evidence, tmp_path / "nowhere", "--into", tmp_path / "t")
    assert (status, told) == (64, f"kelpie pipeline: There is no {tmp_path / 'nowhere'}.\n")


def test_empty_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders in it are no evidence either."""
    (tmp_path / "empty" / "deeper").mkdir(parents=True)
    status, told = refused(capsys, "run", "--from", tmp_path / "empty", "--into", tmp_path / "tables")
    assert (status, told) == (64, f"kelpie pipeline: There is no file in {tmp_path / 'empty'}.\n")
    assert not (tmp_path / "tables").exists()


def test_tables_do_not_go_where_something_else_is(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped --into must not strew tables over somebody's folder."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "letters").mkdir()
    (home / "photos").mkdir()
    status, told = refused(capsys, "run", "--from", evidence, "--into", home)
    assert status == 64
    assert "it holds other things (letters and 1 more) and no tables" in told
    assert sorted(os.listdir(home)) == ["letters", "photos"]


def test_tables_do_not_go_into_a_file_or_below_one(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message is about --into, not about some function's errno."""
    (tmp_path / "file").touch()
    for into in (tmp_path / "file", tmp_path / "file" / "below"):
        status, told = refused(capsys, "run", "--from", evidence, "--into", into)
        assert (status, told) == (
            64,
            f"kelpie pipeline: --into {into}: that is a file; tables go into a folder.\n",
        )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_folder_that_cannot_be_written_is_told(evidence: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before Spark finds out in a hundred tasks."""
    status, told = refused(capsys, "run", "--from", evidence, "--into", "/proc/self")
    assert status == 64
    assert told.startswith("kelpie pipeline: --into /proc/self: tables cannot be written there: ")


def test_tables_are_not_put_into_what_is_read(evidence: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next run would take them for evidence."""
    for into in (evidence, evidence / "tables"):
        status, told = refused(capsys, "run", "--from", evidence, "--into", into)
        assert status == 64
        assert "be read with it the next time" in told


def test_unknown_time_zone_is_told(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rather than read as UTC."""
    words = ["run", "--from", evidence, "--into", tmp_path / "t", "--time-zone", "Europe/Atlantis"]
    assert refused(capsys, *words)[0] == 64


def test_without_java_it_is_said_what_to_install(
    evidence: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PySpark itself says JAVA_GATEWAY_EXITED."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    status, told = refused(capsys, "run", "-q", "--from", evidence, "--into", tmp_path / "tables")
    assert status == 64
    assert told.startswith("kelpie pipeline: Java is missing (no java on the PATH). Install Java 17 or newer")


def test_java_that_is_too_old_is_told_with_its_version(
    evidence: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark 4 on Java 11 ends with an UnsupportedClassVersionError."""
    old = tmp_path / "jdk" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    status, told = refused(capsys, "run", "-q", "--from", evidence, "--into", tmp_path / "tables")
    assert status == 64
    assert f"Java 17 or newer is missing: {old} is Java 11." in told


def test_master_that_is_not_there_is_told_at_once(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark tries for a minute, and then speaks of a MetricsSystem."""
    [port] = ports.free(1)
    words = ["run", "-q", "--from", evidence, "--into", tmp_path / "tables", "--master"]
    status, told = refused(capsys, *words, f"spark://127.0.0.1:{port}")
    assert status == 3
    address = f"127.0.0.1:{port}"
    assert f"No Spark master at spark://{address} ({address} says: connection refused)." in told


@pytest.mark.parametrize(
    "master", ["spark:/127.0.0.1:7077", "spark://127.0.0.1", "mesos://x:5050", "locally"]
)
def test_what_is_no_master_is_refused(
    evidence: Path, tmp_path: Path, master: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the forms that there are."""
    words = ["run", "-q", "--from", evidence, "--into", tmp_path / "tables", "--master", master]
    status, told = refused(capsys, *words)
    assert status == 3
    assert "spark://HOST:7077" in told


def test_without_the_extra_it_is_said_what_to_install(evidence: Path, tmp_path: Path) -> None:
    """Most of Kelpie does without Spark, so people will not have it."""
    hidden = (
        "import sys; sys.modules['pyspark'] = None; from kelpie.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["pipeline", "run", "--from", str(evidence), "--into", str(tmp_path / "tables")]
    done = subprocess.run(
        [sys.executable, "-c", hidden, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 64
    assert "pip install 'kelpie-kafka[pipeline]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "tables").exists()


def submitted(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    assert main(["pipeline", "submit", "--print", *map(str, words)]) == 0
    return shlex.split(capsys.readouterr().out)


def test_submit_prints_a_command_that_can_be_run(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With Kelpie in a file, settings as given, and options of run behind the script."""
    options = ["--from", evidence, "--into", tmp_path / "tables", "-q"]
    settings = ["--conf", "spark.executor.memory=4g", "--conf", "spark.ui.port=1"]
    command = submitted(capsys, "--master", "spark://host:7077", *settings, "--", *options)
    assert Path(command[0]).name == "spark-submit"
    assert os.access(command[0], os.X_OK)
    assert command[1:5] == ["--master", "spark://host:7077", "--deploy-mode", "client"]
    assert {"spark.executor.memory=4g", "spark.ui.port=1"} <= set(command)
    assert f"spark.pyspark.driver.python={sys.executable}" in command
    script = command.index(next(word for word in command if word.endswith("kelpie_pipeline.py")))
    assert command[script + 1 :] == ["run", *map(str, options)]
    assert Path(command[script]).is_file()
    with zipfile.ZipFile(command[command.index("--py-files") + 1]) as package:
        assert {"kelpie/__init__.py", "kelpie/pipeline/spark/log4j2.properties"} <= set(package.namelist())


def test_driver_on_the_cluster_is_told_nothing_of_this_machine(
    evidence: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither its Python nor paths of its log settings exist there."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    words = ["--master", "yarn", "--deploy-mode", "cluster", "--archives", "hdfs:///env.tar.gz#here", "--"]
    command = submitted(capsys, *words, "--from", "/evidence", "--into", "/tables")
    assert "spark.pyspark.python=./here/bin/python" in command
    assert command[command.index("--archives") + 1] == "hdfs:///env.tar.gz#here"
    assert not [word for word in command if sys.executable in word or "extraJavaOptions" in word]


def test_submit_hands_on_stream_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    """The word says which."""
    command = submitted(capsys, "--master", "yarn", "--", "stream", "--from", "/landing", "--into", "/tables")
    assert command[-5:] == ["stream", "--from", "/landing", "--into", "/tables"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--master", "spark://h:7077", "--deploy-mode", "cluster"], "run no Python driver"),
        (["--master", "nonsense"], "is no master of Spark"),
    ],
)
def test_submit_refuses_what_spark_submit_would(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words of its own, and before anything is packed."""
    status, said = refused(capsys, "submit", *words, "--", "--from", "/evidence", "--into", "/tables")
    assert status in (64, 3)
    assert told in said


def test_options_of_spark_belong_before_the_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    """A driver that spark-submit has started cannot choose its master any more."""
    words = ["--from", "/evidence", "--into", "/tables", "--master", "yarn"]
    status, said = refused(capsys, "submit", "--master", "yarn", "--", *words)
    assert (status, "belong before the --" in said) == (64, True)


def test_options_of_run_are_checked_before_they_are_submitted(capsys: pytest.CaptureFixture[str]) -> None:
    """An hour in a queue is a long way to a missing --into."""
    with pytest.raises(SystemExit):
        main(["pipeline", "submit", "--master", "yarn", "--", "--from", "/evidence"])
    assert "--into" in capsys.readouterr().err


def test_what_is_no_setting_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Spark ignores settings whose names do not begin with its own, with a warning in its log."""
    with pytest.raises(SystemExit):
        main(["pipeline", "submit", "--master", "yarn", "--conf", "executor.memory=4g", "--", "--from", "x"])
    assert "write spark.NAME=VALUE" in capsys.readouterr().err


def filled() -> Summary:
    return Summary(
        cluster="payments",
        files=12_345,
        new_files=3,
        bytes=1_234_567_890,
        by_kind={"log": 10, "segment": 20, "scrape": 3, "output": 4, "configuration": 5, "companion": 17},
        written={"offset_commit": 972, "quarantine": 3},
        tables={"offset_commit": 100_972, "quarantine": 3, "findings": 7},
        findings={"critical": 2, "warning": 5},
        unusable=[("a/very/long/name/of/a/file\x1b[2J.log", "It is " + "long and " * 20 + "strange.")] * 25,
        seconds={"start of Spark": 6.1, "files": 0.1, "bronze": 35.3, "tables": 10.7, "diagnosis": 13.14},
    )


def test_summary_tells_everything_in_80_columns() -> None:
    """Rows in, rows by table, quarantined, findings, time by stage; and nothing that a terminal obeys."""
    text = render(filled(), Path("tables"))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    for words in (
        "12,345 files, 3 new (1,234.6 MB)",
        "  rows in      972\n  quarantined  3\n",
        "  … and 5 more, in the table quarantine",
        "  offset_commit      100,972  (+972)",
        "Findings: 2 critical, 5 warning\n  kelpie doctor --tables tables\n",
        "Time: 65.3 s: start of Spark 6.1 s, files 0.1 s, bronze 35.3 s, tables 10.7 s,\n",
        "      diagnosis 13.1 s",
    ):
        assert words in text, text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_in_a_file_is_a_line_for_each_stage() -> None:
    """Logs of schedulers are read afterwards."""
    summary, said = Summary(), io.StringIO()
    progress = ProgressLine(summary, said)
    with progress.shown():
        progress("files")
        summary.files, summary.written["offset_commit"] = 35, 1_866
        progress("findings")
    assert said.getvalue() == (
        "kelpie pipeline: 0 s: looking at files\nkelpie pipeline: 0 s, 35 files, 1,866 rows: findings\n"
    )


def test_progress_on_a_terminal_is_one_line_that_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never wider than the terminal: a line that wraps cannot be written again."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    said = Terminal()
    progress = ProgressLine(filled(), said)
    with progress.shown():
        progress("rebalance, lag, offset_regression, offset_loss, traffic")
    shown = said.getvalue().split("\r\x1b[K")
    assert "\n" not in said.getvalue()
    assert shown[-1] == ""
    assert max(map(len, shown)) == 39


def test_quiet_says_nothing() -> None:
    """Not on a terminal either."""
    for said in (io.StringIO(), Terminal()):
        progress = ProgressLine(filled(), said, quiet=True)
        with progress.shown():
            progress("files")
        assert said.getvalue() == ""
