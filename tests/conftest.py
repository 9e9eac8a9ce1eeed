"""Fixtures that every test may use: real Kafka and ZooKeeper, where they can be had.

What is missing on a machine skips the test with one line that says so; KELPIE_REQUIRE_REAL=1 makes it fail.
"""

import gc
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import Phase, is_hypothesis_test, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from kelpie.places import RemotePath, place_of, stores
from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import Unavailable
from kelpie.real.hadoop import RealHadoop
from kelpie.real.pool import Pool
from kelpie.real.s3 import RealS3
from kelpie.real.zookeeper import RealZooKeeper
from tests import programs
from tests.client.zookeeper_client import delete_all_nodes, kazoo_client
from tests.waiting import pause_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Their asserts shall tell as much as those of tests; said before anybody imports them.
pytest.register_assert_rewrite("tests.lab.clients.scenarios", "tests.lab.clients.clusters")

# The phase that explains failures traces every line, of passing examples too, at twenty times the cost.
# Machines are noisy, so no example has a deadline. The same examples every time, so that a change is never
# blamed for what another one's luck finds; `make fuzz` looks for new ones.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink]
settings.register_profile("kelpie", phases=PHASES, deadline=None, derandomize=True)
settings.register_profile("fuzz", phases=PHASES, deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("KELPIE_EXAMPLES", "kelpie"))


_SHARED = (
    (
        "tests/pipeline/diagnosis/",
        "tests/pipeline/sources/",
        "tests/pipeline/spark/",
        "tests/pipeline/storage/",
        "tests/pipeline/test_",
        "tests/pipeline/traffic/",
        "tests/pipeline/transforms/",
        "tests/lab/spark_kafka/",
        # They share an S3 server with tests of tables.
        "tests/places/",
        "tests/collect/test_landing.py",
    ),
    # A Spark session of their own: with those above, one process would have work when the others have none.
    ("tests/pipeline/rounds/", "tests/pipeline/retention/"),
    ("tests/lab/clients/", "tests/lab/java/"),
    (
        "tests/lab/personas/",
        "tests/cli/test_consume.py",
        "tests/cli/test_probe.py",
        "tests/client/admin/",
        "tests/client/consumer/test_on_real.py",
        "tests/client/zookeeper_consumer/test_commits.py",
        "tests/client/zookeeper_consumer/test_mixed_group.py",
        "tests/client/test_other_groups_real.py",
        "tests/client/test_survey_real.py",
        "tests/client/test_zookeeper_nodes.py",
        "tests/collect/test_zookeeper.py",
        "tests/evidence/test_history.py",
        "tests/guard/test_on_real.py",
        "tests/real/test_cluster.py",
        "tests/real/test_kraft_storage.py",
        "tests/real/test_releases.py",
    ),
)
"""Tests that share a Spark session, or clusters of real Kafka, and so run in the same process. The longest
come first: begun last, they would run alone.
"""


_WIDE = re.compile(
    r"tests/doctor/test_matrix_replay\.py::.*\[(2\.8\.2|3\.9\.2)-"
    r"|tests/doctor/test_signs\.py::.*_of_the_matrix\["
    r"|tests/coordinator/test_random_events\.py::.*\[(0\.9\.0\.1|2\.8|3\.9)\]"
    r"|tests/(lab/personas|client|cli|real)/.*\[[^]]*\b(2\.8|3\.9)\b"
    r"|tests/lab/(clients|java|personas)/.*\[[^]]*\breal\b"
    r"|tests/website/|tests/documentation/test_tutorial\.py"
    r"|tests/(repair/test_real|guard/test_on_real)\.py|tests/lab/spark_kafka/"
    r"|tests/real/test_cli\.py::test_a_cluster_from_up_to_down"
    r"|tests/web/test_browser\.py::test_everybody_can_use_every_page\b"
    r"|tests/pipeline/spark/test_json\.py::test_a_run_"
)
"""The same again, on releases between the oldest and the newest one, or of recordings that another test has.
What clients see on real Kafka: the lab is measured by that, and nothing of Kelpie has a part in it.
Also what goes from end to end, and has tests of its parts: tutorial, site, repairs and the guard on real
Kafka, Spark's Kafka source on the lab, all pages in a browser, a run as a command. `make test-wide` runs
them, and so does `make check`.
"""


def _group(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return next((paths[0] for paths in _SHARED if file.startswith(paths)), file)


class _ByGroup(LoadFileScheduling):
    """Gives a process all tests of a group: of a file, or of files that share clusters.

    xdist's own groups (--dist loadgroup) need a field of pytest's nodes that pytest 9.2 no longer has.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return _ByGroup(config, log) if config.getoption("dist") == "loadfile" else None


def _is_real(item: pytest.Item) -> bool:
    return item.get_closest_marker("real") is not None


_FIRST = [paths[0] for paths in _SHARED]
_LONG_FILES = (
    "tests/test_wheel.py",
    "tests/assistant/test_server.py",
    "tests/cli/test_main.py",
    "tests/cli/test_reference.py",
    "tests/doctor/test_matrix_replay.py",
    "tests/documentation/",
    "tests/guard/test_handler.py",
    "tests/web/access/test_browser_login.py",
    "tests/web/lab/test_lab_pages.py",
    "tests/web/repairs/test_browser_repairs.py",
    "tests/web/test_browser.py",
    "tests/web/test_otlp.py",
)
"""Few tests that take long: a browser, a wheel, commands, recordings, time limits. Begun last, two tests in
a browser ran for half a minute when the other processes had nothing left to do.
"""


def _order(items: Sequence[pytest.Item]) -> tuple[int, bool, bool, bool, int]:
    """After the shared ones, tests on real Kafka take longest, then random examples. What is short comes
    last, so that no process works alone in the end.
    """
    group = _group(items[0].nodeid)
    place = _FIRST.index(group) if group in _FIRST else len(_FIRST)
    is_real = any(map(_is_real, items))
    is_random = any(is_hypothesis_test(getattr(item, "obj", None)) for item in items)
    return place, not is_real, not group.startswith(_LONG_FILES), not is_random, -len(items)


_KILLING = "/test_failover.py"


_RELEASE = re.compile(r"\b(0\.[89]|2\.8|3\.9|4\.3)\b")
_ON_OLD_RELEASES = {
    "0.8": ("tests/guard/test_on_real.py",),
    "0.9": (
        "tests/cli/test_consume.py",
        "tests/client/consumer/test_on_real.py::test_kafka_0_9",
        "tests/client/zookeeper_consumer/test_commits.py",
        "tests/client/zookeeper_consumer/test_mixed_group.py",
        "tests/collect/test_zookeeper.py",
        "tests/real/test_cluster.py",
    ),
}
"""Tests that do not name their release in brackets, and do not use the newest one."""


def _release(nodeid: str) -> str:
    named = _RELEASE.search(nodeid.partition("[")[2])
    old = (release for release, tests in _ON_OLD_RELEASES.items() if nodeid.startswith(tests))
    return named[1] if named else next(old, "4.3")


def _within_group(item: pytest.Item) -> tuple[bool, str]:
    """Tests that kill brokers of a shared cluster come first: a broker that starts again reads the logs of
    all topics, and every test makes some. Then one release after the other, so that few clusters are open.
    """
    file = item.nodeid.partition("::")[0]
    return not file.endswith(_KILLING), _release(item.nodeid) if _group(file) == _FIRST[-1] else ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _WIDE.match(item.nodeid):
            item.add_marker("wide")
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(_group(item.nodeid), []).append(item)
    in_order = sorted(groups.values(), key=_order)
    items[:] = chain.from_iterable(sorted(group, key=_within_group) for group in in_order)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand tests are many objects, all of which stay: the garbage collector would look at them again
    and again, for a sixth of the time that collecting tests takes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Afterwards, the collector need not look at them either, nor once before: little of it is garbage. It
    comes after 20,000 new objects instead of 700: so little is made of a test that most is gone by then.
    """
    session.stash[_ON_REAL] = {_group(item.nodeid) for item in session.items if _is_real(item)}
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


_ON_REAL = pytest.StashKey[set[str]]()
"""The groups with tests on real Kafka or ZooKeeper."""
_POOL = pytest.StashKey[Pool]()
_IDLE_S = 45.0
"""What the JVMs of a cluster take in so long a time, another start takes, too."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Tests of commands say themselves how wide a terminal is; readline leaves its own guess behind."""
    os.environ.pop("COLUMNS", None)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Those tests run first. After them, idle servers would take a tenth of a core from the others. A cluster
    that has been idle for long is closed; between two files, since fixtures of a file may hold it.
    """
    pool = item.session.stash.get(_POOL, None)
    if not pool or not nextitem:
        return
    if _group(nextitem.nodeid) not in item.session.stash[_ON_REAL]:
        pool.close()
    elif nextitem.path != item.path:
        pool.close_idle(_IDLE_S)


def _missing(what: str) -> NoReturn:
    if os.environ.get("KELPIE_REQUIRE_REAL", "0") not in ("", "0"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@contextmanager
def _available() -> Iterator[None]:
    try:
        yield
    except Unavailable as missing:
        _missing(str(missing))


@pytest.fixture(scope="session")
def available() -> Callable[[], AbstractContextManager[None]]:
    """`with available():` around what may raise `Unavailable`."""
    return _available


@pytest.fixture(scope="session")
def _pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    pool = request.session.stash[_POOL] = Pool(often=["4.3.1", "0.9.0.1", "0.8.2.2"])
    yield pool
    pool.close()


_A_DAY_MS = 86_400_000


@pytest.fixture(scope="session")
def real_kafka(_pool: Pool) -> Callable[..., RealCluster]:
    """`real_kafka(version="4.3.1", brokers=1, **config)`: a cluster that all tests asking for it share.

    Leave it as whole as you found it, and use topics and groups of your own. Retention is off: tests write
    records of years ago, which a broker deletes half a minute after its start, and every five minutes.
    """

    def cluster(version: str = "4.3.1", brokers: int = 1, **config: object) -> RealCluster:
        config.setdefault("log_initial_task_delay_ms", _A_DAY_MS)  # Releases before 3.6 do not know it.
        with _available():
            return _pool.shared(version, brokers, **config)

    return cluster


@pytest.fixture
def fresh_real_kafka(_pool: Pool) -> Iterator[Callable[..., RealCluster]]:
    """The same, but a cluster of the test's own, to break."""

    def cluster(version: str = "4.3.1", brokers: int = 1, **config: object) -> RealCluster:
        with _available():
            return _pool.fresh(version, brokers, **config)

    yield cluster
    _pool.close_fresh()


@pytest.fixture
def real_zookeeper(_pool: Pool) -> RealZooKeeper:
    """ZooKeeper 3.9, one server that tests share; each finds it empty, as a new one is."""
    with _available():
        server = _pool.zookeeper()
    with kazoo_client(server.connect) as client:
        delete_all_nodes(client, server.connect)
    return server


@pytest.fixture(scope="session")
def real_s3(_pool: Pool) -> RealS3:
    """An S3 server that tests share. Its key and secret are in the environment of those that ask for `s3`."""
    with _available():
        return _pool.s3()


@pytest.fixture
def s3(real_s3: RealS3, monkeypatch: pytest.MonkeyPatch) -> RemotePath:
    """A folder of the test's own in a bucket, which Kelpie finds as users would let it."""
    for name, value in real_s3.environment.items():
        monkeypatch.setenv(name, value)
    stores.forget()
    return _own_folder(real_s3.url)


@pytest.fixture(scope="session")
def real_hdfs(_pool: Pool) -> RealHadoop:
    """A NameNode and two DataNodes that tests share."""
    with _available():
        return _pool.hadoop()


@pytest.fixture(scope="session")
def real_yarn(_pool: Pool) -> RealHadoop:
    """The same, with a ResourceManager and a NodeManager."""
    with _available():
        return _pool.hadoop(yarn=True)


@pytest.fixture
def hdfs(real_hdfs: RealHadoop) -> RemotePath:
    """A folder of the test's own."""
    return _own_folder(real_hdfs.url)


def _own_folder(url: str) -> RemotePath:
    folder = place_of(f"{url}/{uuid.uuid4()}")
    assert isinstance(folder, RemotePath)
    return folder


@pytest.fixture
def kcat() -> str:
    return programs.need("kcat")


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """`wait_until(condition)`: come back when it holds, fail when it does not in time."""

    def wait(condition: Callable[[], object], *, limit_s: float = 60.0) -> None:
        deadline = time.monotonic() + limit_s
        asked = time.monotonic()
        while not condition():
            answered = time.monotonic()
            assert answered < deadline, f"did not come true within {limit_s} s"
            time.sleep(pause_s(answered - asked))
            asked = time.monotonic()

    return wait


@pytest.fixture(scope="session")
def spark(
    available: Callable[[], AbstractContextManager[None]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator["SparkSession"]:
    """One for all tests of a process: Spark knows no more. It has the jars of Delta and of the connector."""
    from pyspark import SparkContext

    from kelpie.pipeline.spark.session import DELTA, KAFKA, open_session
    from kelpie.real import java

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        # Of Delta, for MERGE; a tenth of the time in which Spark plans the queries of tests.
        "spark.sql.optimizer.excludedRules": (
            "org.apache.spark.sql.delta.metric.OptimizeConditionalIncrementMetric"
        ),
        # No verification, as for brokers (kelpie.real.java): a tenth of the start and of the first queries.
        # Room for what queries leave behind, from the beginning: the heap grows to that anyway, and the
        # collector came so often that it took a twentieth of the time.
        "spark.driver.extraJavaOptions": (
            "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
            "-Xms1g -Xmn500m -XX:MetaspaceSize=192m"
        ),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    with available():
        java.find()
        session = open_session("local[2]", brief=True, jars=(DELTA, KAFKA), settings=settings)
    yield session
    session.stop()
    # `stop` leaves the JVM running for the next session of this process.
    gateway = SparkContext._gateway
    assert gateway is not None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
