"""Checks of a Spark cluster, before a run relies on it: its master, its executors, and what they see.

Without them, a fault shows as a long silence or a page of Spark's stack traces; and a file that only one
executor does not see would be reported as unreadable.
"""

import os
import re
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.pipeline.spark.preflight import ExecutorCheck, check_executor
from kelpie.pipeline.spark.shipping import needed_for
from kelpie.pipeline.spark.spark_errors import ClusterFault
from kelpie.places import Place, place_of

if TYPE_CHECKING:
    from pyspark import SparkContext

PATIENCE_S = 120.0
_CONNECT_S = 5.0
_SETTLED_S = 1.0
_SAMPLES = 20
"""Files of each source that executors are asked to read."""
_MOST_HOSTS = 3
_STANDALONE = "spark://"
_FORMS = "spark://HOST:7077, yarn, k8s://https://HOST:6443 or local[2]"
_KNOWN = re.compile(r"(local(\[.*\])?|yarn|k8s://.+|spark://.+)")


def is_local(master: str | None) -> bool:
    return master is None or master.startswith("local")


def addresses(master: str) -> list[tuple[str, int]]:
    """Addresses of a standalone master, or of several of which one leads; none for other kinds of master.

    Raises ClusterFault.
    """
    if master.startswith("sc://"):
        raise ClusterFault(
            f"{master} is a server of Spark Connect. The pipeline reads and writes files in tasks, by "
            f"RDDs, which Connect does not have. Name a master: {_FORMS}."
        )
    if not _KNOWN.fullmatch(master):
        raise ClusterFault(f"{master!r} is no master of Spark: write {_FORMS}.")
    if not master.startswith(_STANDALONE):
        return []
    pairs = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ClusterFault(f"{address!r} in {master} is no address: write {_STANDALONE}HOST:7077.")
        pairs.append((host.strip("[]"), int(port)))
    return pairs


def reach(master: str) -> None:
    """Connects to the master. Spark would try for a minute, and name neither address nor reason.

    Raises ClusterFault.
    """
    reasons = []
    for host, port in addresses(master):
        try:
            socket.create_connection((host, port), timeout=_CONNECT_S).close()
        except OSError as error:
            reasons.append(f"{host}:{port} says: {(error.strerror or str(error)).lower()}")
        else:
            return
    if reasons:
        raise ClusterFault(
            f"No Spark master at {master} ({'; '.join(reasons)}). Is it up, and is the port the one of its "
            f"page's headline ({_STANDALONE}…), not that of the page itself?"
        )


def check(
    context: "SparkContext",
    sources: Sequence[Place],
    folder: Place,
    *,
    patience_s: float = PATIENCE_S,
    announce: Callable[[str], None] = lambda _: None,
) -> None:
    """Checks that executors have what a run needs. Raises ClusterFault."""
    announce("waiting for executors")
    _await_executors(context, patience_s)
    announce("asking executors what they see")
    files = [sample for source in sources for sample in islice(_samples(source), _SAMPLES)]
    with _mark(folder) as mark:
        tasks = context.defaultParallelism * 2
        ask = partial(check_executor, needed_for([folder, *sources]), files, str(folder), mark)
        checks: list[ExecutorCheck] = context.parallelize(range(tasks), tasks).map(lambda _: ask()).collect()
    judge(checks, context.master)


def judge(checks: Sequence[ExecutorCheck], master: str | None) -> None:
    """Raises ClusterFault for the first thing that is wrong with any executor."""
    wrong = list({executor.host: executor for executor in checks if not executor.is_good}.values())
    lacking = [executor for executor in wrong if executor.missing]
    if lacking:
        names = ", ".join(name for name, _ in lacking[0].missing)
        raise ClusterFault(
            f"Python on {_hosts(lacking)} lacks {names}: {lacking[0].python}. Install them there "
            "(pip install 'kelpie-kafka[pipeline]'), name another Python with PYSPARK_PYTHON, or bring an "
            "environment along: --archives environment.tar.gz#environment (docs/spark-clusters.md)."
        )
    if wrong:
        first = wrong[0]
        what = ": ".join(first.unseen[0]) if first.unseen else f"the folder of the tables: {first.folder}"
        raise ClusterFault(
            f"Executors of {master} do not see what this machine sees. On {_hosts(wrong)}, {what}. Evidence "
            "and tables must be on a file system that all machines have under the same path."
        )


def is_readable(path: str | Place) -> bool:
    """Whether the driver's machine can read a file."""
    try:
        with place_of(str(path)).open("rb"):
            return True
    except OSError:
        return False


def unseen(path: str | Place, reason: str) -> ClusterFault:
    """The fault of an executor that joined after the check and lacks the file system."""
    return ClusterFault(
        f"A task cannot read {path}, and this machine can: {reason.rstrip('.')}. Evidence must be on a file "
        "system that all machines have under the same path. What this run has begun, the next one ends."
    )


def _hosts(checks: Sequence[ExecutorCheck]) -> str:
    hosts = sorted({executor.host for executor in checks})
    more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
    return ", ".join(hosts[:_MOST_HOSTS]) + more


def _await_executors(context: "SparkContext", patience_s: float) -> None:
    """Waits until there are executors and no more come: then each of them is checked."""
    conf = context.getConf()
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return  # With dynamic allocation, executors come with the first tasks.
    deadline = time.monotonic() + patience_s
    count, since = 0, time.monotonic()
    while count == 0 or time.monotonic() - since < _SETTLED_S:
        jvm = context._jsc
        if jvm is None or jvm.sc().isStopped():
            raise ClusterFault(f"{context.master} refused the application, or removed it; its log says why.")
        now = int(jvm.sc().getExecutorMemoryStatus().size()) - 1  # The driver is one of them.
        if now != count:
            count, since = now, time.monotonic()
        if count == 0 and time.monotonic() > deadline:
            raise ClusterFault(
                f"{context.master} gave no executor within {patience_s:.0f} s. Are workers up, with "
                f"{conf.get('spark.executor.memory', '1g')} of memory and a core free? Ask for less with "
                "--conf spark.executor.memory=512m, or wait longer with --wait."
            )
        time.sleep(0.1)


def _samples(source: Place) -> Iterator[tuple[str, int]]:
    if not isinstance(source, Path):
        found = source.stat()
        files = source.files() if found.is_folder else [(source, found)]
        yield from ((str(path), entry.st_size) for path, entry in files)
        return
    if source.is_file():
        yield str(source.absolute()), source.stat().st_size
    for folder, _, names in os.walk(source.absolute()):
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_file() and os.access(path, os.R_OK):
                yield str(path), path.stat().st_size


@contextmanager
def _mark(folder: Place) -> Iterator[str]:
    if not isinstance(folder, Path):
        mark = folder / f"_seen-{uuid.uuid4()}"
        mark.write_bytes(b"")
        try:
            yield mark.name
        finally:
            mark.unlink(missing_ok=True)
        return
    handle, path = tempfile.mkstemp(prefix="_seen-", dir=folder)
    os.close(handle)
    try:
        yield Path(path).name
    finally:
        Path(path).unlink(missing_ok=True)
