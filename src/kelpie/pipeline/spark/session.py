"""Starts Spark for a run: on this machine, or on a cluster.

Kelpie itself adds files to Delta tables and reads their logs without Spark (`storage.lake`). Jars are for
those who want more: `DELTA` for `spark.read.format("delta")`, `KAFKA` to read topics.

On a cluster, the driver runs here, and executors get Kelpie itself from it (`shipping`). Under spark-submit
(`kelpie pipeline submit`), Java is running already, and its master and settings are used.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext

from kelpie import folders
from kelpie.pipeline.spark import class_archive, cluster, shipping, worker_daemon
from kelpie.places import Place, credentials
from kelpie.real import fetch, java, releases
from kelpie.real.cluster_errors import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA, KAFKA, S3 = "delta-4.4.0", "spark-kafka-4.2.0", "hadoop-aws-3.5.0"
_TITLES = {
    DELTA: "Delta 4.4.0",
    KAFKA: "Spark's Kafka connector 4.2.0",
    S3: "Hadoop's file system for S3 3.5.0",
}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG = resources.files("kelpie.pipeline.spark") / "log4j2.properties"
JAVA_LOG = f"-Dlog4j2.configurationFile=file:{quote(str(_LOG))}"
"""Errors only: what Spark logs about itself does not help users of Kelpie."""

_HIDDEN = (
    "(?i)secret|password|passwd|passphrase|token|(access|account|private|api)[._]?key|[.]sas[.]|credential|jaas"
    "|keystore|truststore"
)
_SETTINGS = {
    "spark.app.name": "kelpie",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Files are named one by one, from the log of their table: Spark needs no job to list them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.ui.showConsoleProgress": "false",
    # For each column that Python names, PySpark would tell Java the line of code: a tenth of small runs.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark's pages, event logs and plans show settings and options. Its own patterns know nothing of JAAS,
    # which holds a password, and hide of options only addresses.
    "spark.redaction.regex": _HIDDEN,
    "spark.sql.redaction.options.regex": f"{_HIDDEN}|url",
    "spark.redaction.string.regex": r"(?i)password\s*=\s*\S+|LoginModule\s[^;]*",
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_LOCAL = {
    **_LOOPBACK,
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": worker_daemon.MODULE,
    # Workers read many megabytes at a time, again and again: freed memory is kept for the next piece.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(128 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Tasks that read the log of a table. The default of 50 costs more than reading a small log.
    "spark.databricks.delta.snapshotPartitions": "2",
}
_CODE = "spark.sql.codegen.factoryMode"
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -XX:ReservedCodeCacheSize=240m"
_BRIEF = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    # Nor for single expressions: to compile one, Spark looks for some names in all of its 250 jars.
    _CODE: "NO_CODEGEN",
    # Filters that follow from others: to look for them takes longer than they save.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""The JVM compiles quickly but less well, and Spark does not generate code: a run over little input takes
half the time, but long queries take longer."""


_FOR_FEW_ROWS: "WeakKeyDictionary[SparkSession, SparkSession]" = WeakKeyDictionary()
_NAMES_IN_JAVA = ("functions", "org.apache.spark.sql.functions", "PythonUtils")
"""PySpark asks for one of them with each column, and Java would look into its 250 jars each time."""
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""spark-submit sets this for the Python process that it starts."""
_SHIPPED = "spark.submit.pyFiles"


def submitted_to() -> str | None:
    """The master that spark-submit was given, if it has started this process."""
    if _SUBMITTED not in os.environ:
        return None
    SparkContext._ensure_initialized()  # The settings are in Java.
    return SparkConf().get("spark.master", "local[*]")


def for_few_rows(spark: "SparkSession") -> "SparkSession":
    """A session beside this one in which Spark generates no code: for queries over few rows.

    Code differs with the numbers in a query, so each round would compile its queries anew: that takes longer
    than they do. A session that is like that already is returned.
    """
    if is_for_few_rows(spark):
        return spark
    if spark not in _FOR_FEW_ROWS:
        session = spark.newSession()
        own = {name: value for name, value in spark.conf.getAll.items() if name.startswith("spark.sql.")}
        for name, value in (own | _BRIEF).items():
            if session.conf.isModifiable(name):
                session.conf.set(name, value)
        _FOR_FEW_ROWS[spark] = session
    return _FOR_FEW_ROWS[spark]


def is_for_few_rows(spark: "SparkSession") -> bool:
    """Whether this is such a session, or one for a run over little input."""
    return spark.conf.get(_CODE, None) == _BRIEF[_CODE]


def spark_home() -> Path:
    """The folder of Spark's programs: SPARK_HOME, or that in PySpark's wheel."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415

    return Path(_find_spark_home())


def _fetched(name: str, announce: Callable[[str], None] | None) -> list[Path]:
    """Jars, downloaded once as those of Kafka are. Raises `Unavailable`.

    With `spark.jars.packages`, Spark would resolve POMs anew for every cache.
    """
    folder = fetch.libraries(name, releases.pinned(name), title=_TITLES[name], announce=announce)
    return sorted(folder.glob("*.jar"))


def open_session(
    master: str | None = None,
    *,
    brief: bool = False,
    jars: Sequence[str] = (),
    places: Sequence[Place] = (),
    archives: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    announce: Callable[[str], None] | None = None,
    keep_classes: bool = False,
) -> "SparkSession":
    """Spark on `master`; None: on all cores of this machine. Returns the open session if there is one.

    `brief`: for runs of a minute, in which the JVM has little to do.
    `jars`: DELTA, KAFKA; fetched when they are first needed. `places`: what Spark reads and writes; it needs
    more for some. `archives`: a Python environment for executors.
    `log`: a file for what the JVM prints; None: stderr.
    `keep_classes`: for later starts on this machine; Java takes some seconds longer to end, once.
    Raises `Unavailable`, `ClusterFault`, and what Spark raises (`spark_errors.SPARK`).
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - half a second, for those who need it.

    open_context(
        master,
        brief=brief,
        jars=jars,
        places=places,
        archives=archives,
        settings=settings,
        log=log,
        announce=announce,
        keep_classes=keep_classes,
    )
    session = SparkSession.builder.getOrCreate()
    for name in _NAMES_IN_JAVA:
        setattr(session._jvm, name, getattr(session._jvm, name))
    return session


def open_context(
    master: str | None = None,
    *,
    brief: bool = False,
    jars: Sequence[str] = (),
    places: Sequence[Place] = (),
    archives: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    announce: Callable[[str], None] | None = None,
    keep_classes: bool = False,
) -> SparkContext:
    """The same without queries: for plain tasks. A session costs Java a second more."""
    submitted = submitted_to()
    master = submitted or master or "local[*]"
    local = cluster.is_local(master)
    everything = {
        **_SETTINGS,
        **(_LOCAL if local else {}),
        **(_BRIEF if brief else {}),
        **(_loopback(master) if not local else {}),
        "spark.master": master,
    }
    credentials.adopt(settings or {})
    if uses_s3(places):
        everything |= credentials.for_java()
        jars = (*jars, *(() if submitted else (S3,)))
    if jars:
        everything["spark.jars"] = ",".join(str(jar) for name in jars for jar in _fetched(name, announce))
    if DELTA in jars:
        everything |= _DELTA
    if archives:
        everything["spark.archives"] = archives
    everything |= settings or {}
    if submitted is None:
        _require_trusted_cache()
        java.find()
        cluster.reach(master)
        if local or _loopback(master):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", shipping.python_of(archives))
        classes = class_archive.options(spark_home() / "jars", make=keep_classes)
        java_options = [
            JAVA_LOG,
            _BRIEF_JAVA if brief else "",
            classes if local else "",
            everything.get(_JAVA_OPTIONS, ""),
        ]
        everything[_JAVA_OPTIONS] = " ".join(filter(None, java_options))
    conf = SparkConf()
    for name, value in everything.items():
        if submitted is None:
            conf.set(name, value)
        else:
            conf.setIfMissing(name, value)
    context = _started(conf, log if submitted is None else None)
    if uses_s3(places):
        _share_credentials(context)
    if not local and shipping.ZIP not in conf.get(_SHIPPED, ""):
        context.addPyFile(str(shipping.package()))
    return context


def uses_s3(places: Sequence[Place]) -> bool:
    return any(not isinstance(place, Path) and place.scheme == "s3a" for place in places)


def jars_of(name: str) -> list[Path]:
    """For spark-submit, which must know them before it starts. Raises `Unavailable`."""
    return _fetched(name, None)


def _share_credentials(context: SparkContext) -> None:
    """Gives tasks what this process knows of S3, wherever it comes from: also Hadoop's configuration.

    It goes to executors as a part of tasks: so Spark's pages, event logs and files of YARN do not have it.
    """
    assert context._jsc is not None
    configured = context._jsc.hadoopConfiguration()
    credentials.adopt({name: configured.get(name) or "" for name in credentials.OF_HADOOP})
    context.environment.update(credentials.s3_settings())


AUTHENTICATE = "spark.authenticate"
NOT_AUTHENTICATED = (
    f"{AUTHENTICATE} is not set: whoever reaches this Spark cluster over the network can read what its "
    "machines exchange, and run code there. docs/spark-clusters.md says how to set it."
)


def is_open_cluster(context: SparkContext) -> bool:
    """Whether a cluster of several machines takes calls from anybody."""
    master = context.master or ""
    if cluster.is_local(master) or _loopback(master):
        return False
    return context.getConf().get(AUTHENTICATE, "false").lower() != "true"


def active_tasks(context: SparkContext) -> tuple[int, int]:
    """Tasks of the active stages: how many are done, and how many there are."""
    tracker = context.statusTracker()
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    stages = [info for info in infos if info is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def _started(conf: SparkConf, log: Path | None) -> SparkContext:
    """Java prints on stderr, and so do the workers' Python processes through it; `log` gets that."""
    if log is None or SparkContext._gateway is not None:
        context = SparkContext.getOrCreate(conf)
    else:
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

        with log.open("ab") as stderr:
            gateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call] # It has no types.
        context = SparkContext(conf=conf, gateway=gateway)
    context.setLogLevel("ERROR")
    return context


def _require_trusted_cache() -> None:
    """A run without a cache is slow; a run with one that others may write is theirs. Raises Unavailable."""
    try:
        folders.trusted_cache()
    except folders.Untrusted as error:
        raise Unavailable(f"{error.strerror}.") from None
    except (OSError, RuntimeError):
        pass  # Nothing can be kept, and nothing is taken.


def _loopback(master: str) -> dict[str, str]:
    """A cluster on this machine does not need the machine's name."""
    hosts = {host for host, _ in cluster.addresses(master)}
    return _LOOPBACK if hosts and hosts <= {"127.0.0.1", "localhost"} else {}
