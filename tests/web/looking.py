"""Looks that tests make by hand, at times of their choice."""

from kelpie.client.settings import Settings
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.overview import GroupOverview
from kelpie.examination import Examination, Examined
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.web.snapshot import KnownGroups, Snapshot
from kelpie.web.watch import Watch
from tests.doctor.building import a_broker, an_offsets_topic


def examined(rows: Observations, at: Instant) -> Examined:
    cluster, cases = build(rows, now=at)
    return Examined(diagnose_all(cluster, cases), True, cases)


def a_snapshot(rows: Observations, at: Instant) -> Snapshot:
    return Snapshot(examined(rows, at), at, 5)


def many_groups(count: int, at: Instant) -> Snapshot:
    """A look at a large cluster, of which only the rows of groups are at hand: making them costs little."""
    rows = [
        GroupOverview(
            group=f"group-{number:05}",
            kind="classic",
            state="Stable",
            protocol="range",
            members=number % 7,
            coordinator=number % 3 + 1,
            offsets_partition=number % 50,
            lag=number * 13 % 1_000,
            lag_is_whole=True,
            lag_ms=number % 60_000,
            may_be_older=False,
            lag_change=0.0,
            last_commit=at,
            worst=None,
        )
        for number in range(count)
    ]
    readers = {
        f"topic-{number:04}": [row.group for row in rows[number :: count // 10]]
        for number in range(count // 10)
    }
    brokers = Observations(brokers=[a_broker(1), a_broker(2), a_broker(3)], partitions=an_offsets_topic())
    return Snapshot(examined(brokers, at), at, 5, KnownGroups(tuple(rows), readers))


def a_watch(*looks: tuple[Instant, Observations], name: str = "main") -> Watch:
    """Of a live cluster, after these looks; nobody looks again."""
    now = looks[-1][0] if looks else 0
    watch = Watch(name, Examination(Settings.of("localhost:1"), clock=lambda: now), 30)
    for at, rows in looks:
        watch._take(examined(rows, at), at)
    return watch
