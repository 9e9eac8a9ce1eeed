"""Clusters that tests share, without any Kafka: who gets which, and when one is closed."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from kelpie.real import pool
from kelpie.real.pool import Pool


@dataclass(eq=False)
class Pretended:
    """Has as many nodes as a real cluster would have, and starts none of them."""

    version: str
    size: int
    config: dict[str, Any] = field(default_factory=dict)
    archive_classes: bool = False
    is_open: bool = False
    nodes: dict[str, Any] = field(default_factory=dict)

    def open(self) -> "Pretended":
        self.is_open = True
        self.nodes = {str(number): SimpleNamespace(up=True) for number in range(self.size)}
        return self

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Pool:
    monkeypatch.setattr(pool, "RealCluster", Pretended)
    return Pool()


def test_the_same_wish_gets_the_same_cluster(clusters: Pool) -> None:
    """A start takes seconds; other settings are another cluster."""
    first = clusters.shared("4.3.1", 1, num_partitions=2)
    assert clusters.shared("4.3.1", 1, num_partitions=2) is first
    assert clusters.shared("4.3.1", 1, num_partitions=3) is not first


def test_a_broken_cluster_is_replaced(clusters: Pool) -> None:
    """A test that has ruined it must not ruin the others."""
    first: Any = clusters.shared("4.3.1", 3)
    first.nodes["2"].up = False
    second: Any = clusters.shared("4.3.1", 3)
    assert (first.is_open, second.is_open) == (False, True)


def test_a_cluster_of_several_brokers_makes_room_for_the_next_one(clusters: Pool) -> None:
    """Idle brokers take processor time from the tests that run; a lone broker takes little."""
    small: Any = clusters.shared("0.9.0.1", 1)
    large: Any = clusters.shared("4.3.1", 3)
    again: Any = clusters.shared("0.9.0.1", 1)
    assert again is small
    assert large.is_open, "no other cluster was opened"
    clusters.shared("3.9.2", 1)
    assert (small.is_open, large.is_open) == (True, False)
    assert clusters.shared("4.3.1", 3) is not large


def test_a_cluster_that_nobody_asks_for_is_closed(clusters: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle JVM takes a twentieth of a core; after a while that is more than another start."""
    seconds = [0.0]
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    old: Any = clusters.shared("0.9.0.1")
    used: Any = clusters.shared("2.8.2")
    seconds[0] = 10.0
    clusters.shared("2.8.2")
    seconds[0] = 40.0
    clusters.close_idle(40.0)
    assert (old.is_open, used.is_open) == (False, True)
    again: Any = clusters.shared("0.9.0.1")
    assert (again is not old, again.is_open) == (True, True)


def test_classes_are_archived_for_releases_that_are_started_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive takes as long as some starts, which one cluster alone would never save."""
    monkeypatch.setattr(pool, "RealCluster", Pretended)
    clusters = Pool(often=["4.3.1"])
    often: Any = clusters.shared("4.3.1")
    rarely: Any = clusters.fresh("0.9.0.1")
    assert (often.archive_classes, rarely.archive_classes) == (True, False)
