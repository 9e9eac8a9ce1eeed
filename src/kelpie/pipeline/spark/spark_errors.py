"""Errors of Spark in one or two lines: users cannot read stack traces of Java."""

import re

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kelpie.model.kelpie_error import KelpieError
from kelpie.pipeline.storage.journal import Conflict

SPARK = (PySparkException, Py4JError)
"""Errors that Spark raises."""
TABLES = (DeltaError, Conflict)
"""Errors about tables that cannot be read or written."""

_LONGEST = 400
_WHERE = re.compile(r"\(TID \d+\) \((\S+) executor (\S+?)\)")
_WORDS = re.compile(r"^(?:[\w$]+\.)+[\w$]*: ")
"""The name of a Java class before its message."""
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*(?:\n(?![ \t\n]).+)*)")
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)


class ClusterFault(KelpieError):
    """A fault of the cluster that Spark runs on. The text says what, where, and what to do."""


class SeveralClusters(KelpieError):
    """Disks of several clusters in one run: their records would pass for copies of each other."""


_KNOWN: tuple[tuple[str, str], ...] = (
    (
        r'Cannot run program "([^"]+)"',
        "there is no Python at {0}. Name one that is there with PYSPARK_PYTHON, or bring an environment "
        "along with --archives (docs/spark-clusters.md).",
    ),
    (
        r"Python in worker has different version:? (\S+) than that in driver:? ([\d.]+\d)",
        "Python is {0}, and {1} here: they must be the same. Name another one with PYSPARK_PYTHON.",
    ),
    (
        r"No module named '([^']+)'",
        "Python lacks the module {0}. Install it there, or bring an environment along with --archives "
        "(docs/spark-clusters.md).",
    ),
    (
        r"OutOfMemoryError: (Java heap space|GC overhead[^\n]*)",
        "Java's memory was not enough ({0}). Give more: --conf spark.driver.memory=4g, and on a cluster "
        "spark.executor.memory.",
    ),
    (
        r"(No space left on device)",
        "the disk is full ({0}). Spark's own files go to SPARK_LOCAL_DIRS or /tmp.",
    ),
    (
        r"Mkdirs failed to create (?:file:)?(\S+)",
        "{0} cannot be made: the folder of the tables must be one that all machines see and may write.",
    ),
    (r"(/\S+)[^\n]*\(?Permission denied", "{0} may not be read or written (permission denied)."),
    (
        r"(All masters are unresponsive|Master removed our application[^\n]*)",
        "the master did not take the application, or gave it up ({0}); its log and those of workers say why.",
    ),
    (
        r"(SparkContext was shut down|stopped SparkContext|SparkContext has been shutdown)",
        "Spark was stopped while it was at work: by its master, which did not answer or gave the application "
        "up, or by somebody. The logs of master and workers say why.",
    ),
    (
        r"(JAVA_GATEWAY_EXITED|Answer from Java side is empty|trying to connect to the Java server)",
        "Java, which runs Spark here, has ended; it may have been out of memory.",
    ),
)


def explain(error: BaseException) -> str:
    """What happened, where, and what to do if that is known."""
    text = str(error)
    host = _WHERE.search(text)
    where = f"On {host[1]}, " if host and host[2] != "driver" else ""
    for pattern, words in _KNOWN:
        if match := re.search(pattern, text):
            text_of_fault = words.format(*match.groups())
            return where + text_of_fault if where else text_of_fault[0].upper() + text_of_fault[1:]
    return f"Spark failed: {where}{_root(text)}"


def brief(error: BaseException) -> str:
    """The first line of its message."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " …"


def _root(text: str) -> str:
    """The innermost cause, without its stack trace."""
    tracebacks = _TRACEBACK.findall(text)
    causes = _CAUSE.findall(text)
    if tracebacks:
        line = tracebacks[-1].strip().splitlines()[0]
    elif causes:
        line = causes[-1]
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\t")]
        named = [line for line in lines if not line.startswith("An error occurred while calling")]
        line = (named or lines or [""])[0].removeprefix(": ")
    line = _WORDS.sub("", line)
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " …"
