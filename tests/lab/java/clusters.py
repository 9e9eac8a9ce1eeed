"""The fixture `kafka` for tests of Java programs: the lab or real Kafka, set up as for other clients."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kelpie.lab import SyncCluster
from kelpie.real.cluster import RealCluster
from tests.lab.clients.clusters import BROKERS, SETTINGS, Kafka, Lab, Real


@pytest.fixture(scope="session")
def clusters(real_kafka: Callable[..., RealCluster]) -> Iterator[Callable[[str], Kafka]]:
    """Each is opened when it is first asked for. The real one is shared with all who want its settings."""
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    known: dict[object, Kafka] = {}
    with ExitStack() as until_the_end:

        def find(kind: str) -> Kafka:
            if kind == "real":
                shared = real_kafka("4.3.1", BROKERS, **settings)
                return known.setdefault(shared, Real(shared))
            if kind not in known:
                known[kind] = Lab(until_the_end.enter_context(SyncCluster(BROKERS, config=SETTINGS)))
            return known[kind]

        yield find


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def kafka(request: pytest.FixtureRequest, clusters: Callable[[str], Kafka]) -> Iterator[Kafka]:
    """Three brokers that all tests share; those that a test has killed are up again before the next one."""
    cluster = clusters(request.param)
    yield cluster
    cluster.heal()
