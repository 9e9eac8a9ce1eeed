"""What Spark and its executors say when something is wrong, in a line or two."""

from pathlib import Path

import pytest

from kelpie.pipeline.spark.cluster import addresses, judge
from kelpie.pipeline.spark.preflight import ExecutorCheck, check_executor
from kelpie.pipeline.spark.spark_errors import ClusterFault, explain

LOST = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 "
    "times, most recent failure: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): "
)
TRACE = "\n\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2935)\n\tat x.y(z:1)\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f'{LOST}java.io.IOException: Cannot run program "/opt/python": error=2, No such file{TRACE}',
            "On 10.0.0.7, there is no Python at /opt/python. Name one",
        ),
        (
            f"{LOST}org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            f"  File \"worker.py\", line 1\n    x\nModuleNotFoundError: No module named 'numba'\n{TRACE}",
            "On 10.0.0.7, Python lacks the module numba. Install it there",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: "
            "3.11, PySpark cannot run with different minor versions.",
            "Python is 3.12, and 3.11 here: they must be the same.",
        ),
        (
            f"{LOST}java.lang.OutOfMemoryError: Java heap space{TRACE}",
            "On 10.0.0.7, Java's memory was not enough",
        ),
        (f"x: java.io.IOException: No space left on device{TRACE}", "The disk is full"),
        (
            f"{LOST}java.io.IOException: Mkdirs failed to create file:/mnt/tables/gold{TRACE}",
            "On 10.0.0.7, /mnt/tables/gold cannot be made",
        ),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            f": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.{TRACE}",
            "Spark was stopped while it was at work",
        ),
        (
            f"{LOST}org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            f'  File "worker.py", line 1, in main\n    x\nValueError: no such thing\n{TRACE}',
            "Spark failed: On 10.0.0.7, ValueError: no such thing",
        ),
        (
            f"An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: [X] Bad.{TRACE}"
            f"Caused by: java.lang.RuntimeException: the innermost{TRACE}",
            "Spark failed: the innermost",
        ),
        ("", "Spark failed: "),
    ],
)
def test_java_is_told_in_a_line(text: str, told: str) -> None:
    """The root, where it was, and what to do about what is known."""
    said = explain(RuntimeError(text))
    assert said.startswith(told)
    assert "\n" not in said
    assert "\tat " not in said


def test_page_of_java_is_cut() -> None:
    """Plans of queries are pages long."""
    assert len(explain(RuntimeError("x" * 100_000))) < 500


def test_executor_that_sees_everything_is_good(tmp_path: Path) -> None:
    """And leaves nothing behind."""
    (tmp_path / "mark").touch()
    (tmp_path / "file").write_bytes(b"12345")
    sight = check_executor(["json"], [(str(tmp_path / "file"), 5)], str(tmp_path), "mark")
    assert sight.is_good
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mark"]
    judge([sight], "spark://h:7077")


@pytest.mark.parametrize(
    ("file", "folder", "told"),
    [
        ("nothing", "", "nothing: no such file or directory"),
        ("short", "", "short: another file is there, of 2 bytes"),
        ("whole", "elsewhere", "the folder of the tables: no such folder"),
        ("whole", "another", "the folder of the tables: another folder is there"),
    ],
)
def test_what_an_executor_does_not_see_is_told(tmp_path: Path, file: str, folder: str, told: str) -> None:
    """Else its tasks would call good files unreadable, or write tables that nobody finds."""
    (tmp_path / "mark").touch()
    (tmp_path / "another").mkdir()
    (tmp_path / "short").write_bytes(b"12")
    (tmp_path / "whole").write_bytes(b"12345")
    sight = check_executor([], [(str(tmp_path / file), 5)], str(tmp_path / folder), "mark")
    with pytest.raises(ClusterFault) as fault:
        judge([ExecutorCheck("good", "python"), sight], "spark://h:7077")
    assert told in str(fault.value)
    assert sight.host in str(fault.value)
    assert "under the same path" in str(fault.value)


def test_modules_that_executors_lack_are_told_with_hosts(tmp_path: Path) -> None:
    """Before a file that they could not open: without modules nothing else helps."""
    (tmp_path / "mark").touch()
    sight = check_executor(["json", "no_such_module"], [("/nothing", 1)], str(tmp_path), "mark")
    sights = [ExecutorCheck(f"host-{number}", "python3", sight.missing) for number in range(5)]
    with pytest.raises(ClusterFault, match="host-0, host-1, host-2 and 2 more lacks no_such_module: python3"):
        judge(sights, "spark://h:7077")


def test_a_server_of_spark_connect_is_refused_with_the_reason() -> None:
    """It is no master: tasks are RDDs, which Connect does not have."""
    with pytest.raises(ClusterFault, match=r"sc://h:15002 is a server of Spark Connect\. .*Name a master: "):
        addresses("sc://h:15002")


def test_several_masters_have_several_addresses() -> None:
    """One of them leads, and the others wait."""
    assert addresses("spark://a:7077,b:7078") == [("a", 7077), ("b", 7078)]
    assert addresses("spark://[::1]:7077") == [("::1", 7077)]
    assert addresses("yarn") == addresses("local[2]") == addresses("k8s://https://h:6443") == []
