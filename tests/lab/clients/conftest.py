"""`kafka`: each test runs twice, against the lab and against real Kafka, and must see the same."""

from collections.abc import Callable, Iterator

import pytest

from kelpie.lab import SyncCluster
from kelpie.real.cluster import RealCluster
from tests.lab.clients.clusters import BROKERS, SETTINGS, Kafka, Lab, Real


@pytest.fixture(scope="session")
def _lab() -> Iterator[Lab]:
    with SyncCluster(BROKERS, config=SETTINGS) as cluster:
        yield Lab(cluster)


@pytest.fixture(scope="session")
def _real(real_kafka: Callable[..., RealCluster]) -> Callable[[], Real]:
    """The pool's cluster for these settings; it gives another one should a test have ruined it."""
    known: dict[int, Real] = {}

    def cluster() -> Real:
        settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
        shared = real_kafka("4.3.1", BROKERS, **settings)
        return known.setdefault(id(shared), Real(shared))

    return cluster


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """Three brokers that all tests share; those that a test has killed are up again before the next one."""
    cluster: Kafka
    if request.param == "lab":
        cluster = request.getfixturevalue("_lab")
    else:
        cluster = request.getfixturevalue("_real")()
    yield cluster
    cluster.heal()
