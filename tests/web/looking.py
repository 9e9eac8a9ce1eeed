"""Looks that tests make by hand, at times of their choice."""

from kelpie.client.settings import Settings
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.examination import Examination, Examined
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch


def examined(rows: Observations, at: Instant) -> Examined:
    cluster, cases = build(rows, now=at)
    return Examined(diagnose_all(cluster, cases), True, cases)


def a_snapshot(rows: Observations, at: Instant) -> Snapshot:
    return Snapshot(examined(rows, at), at, 5)


def a_watch(*looks: tuple[Instant, Observations], name: str = "main") -> Watch:
    """Of a live cluster, after these looks; nobody looks again."""
    now = looks[-1][0] if looks else 0
    watch = Watch(name, Examination(Settings.of("localhost:1"), clock=lambda: now), 30)
    for at, rows in looks:
        watch._take(examined(rows, at), at)
    return watch
