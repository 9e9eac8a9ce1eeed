"""Sessions of brokers with ZooKeeper: one each, and what becomes of them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from kelpie.lab import mapping_stores
from kelpie.real.zookeeper import RealZooKeeper, four_letters
from tests.lab.attribution.live import A, B, live

pytestmark = pytest.mark.real

WaitUntil = Callable[..., None]


def _sessions(server: RealZooKeeper) -> int:
    lines = dict(
        line.split("\t", 1) for line in four_letters(server.port, "mntr").splitlines() if "\t" in line
    )
    return int(lines["zk_global_sessions"])


@pytest.fixture
def own_zookeeper(available: Callable[[], AbstractContextManager[None]]) -> Iterator[RealZooKeeper]:
    """One without sessions that brokers of other tests have left."""
    with available():
        server = RealZooKeeper().open()
    yield server
    server.close()


def test_each_broker_has_a_session_that_ends_with_it(
    own_zookeeper: RealZooKeeper, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that stops ends its session. That of a killed broker stays until the server gives it up."""
    monkeypatch.setattr(mapping_stores, "_SESSION_S", 2.0)
    with live("connection", own_zookeeper.connect) as lab:
        wait_until(lambda: _sessions(own_zookeeper) == 3)
        lab.cluster.kill(A)
        assert _sessions(own_zookeeper) == 3
        lab.cluster.stop(B)
        assert _sessions(own_zookeeper) <= 2
        wait_until(lambda: _sessions(own_zookeeper) == 1)
        lab.cluster.start(A)
        wait_until(lambda: _sessions(own_zookeeper) == 2)
    wait_until(lambda: _sessions(own_zookeeper) == 0)
