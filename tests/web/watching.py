"""Clusters that pages show in tests."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from starlette.testclient import TestClient

from kelpie.examination import Examination
from kelpie.web.application import application
from kelpie.web.exposition import OWN, Limits
from kelpie.web.meter import Meter
from kelpie.web.watch import Watch

HOST = "kelpie.test"


@contextmanager
def pages(
    examination: Examination,
    name: str = "main",
    exporters: Sequence[str] = (OWN,),
    limits: Limits | None = None,
    meter: Meter | None = None,
) -> Iterator[TestClient]:
    """Pages of one cluster, after the first look."""
    with Watch(name, examination, every_s=3600, meter=meter) as watch:
        looked(watch)
        with client([watch], exporters, limits) as browser:
            yield browser


def client(
    watches: list[Watch], exporters: Sequence[str] = (OWN,), limits: Limits | None = None
) -> TestClient:
    return TestClient(application(watches, [HOST], exporters, limits=limits), base_url=f"http://{HOST}")


def looked(watch: Watch, limit_s: float = 60) -> None:
    """Waits until a look has come to an end."""
    deadline = time.monotonic() + limit_s
    while watch.latest is None and not watch.failures:
        assert time.monotonic() < deadline, f"no look within {limit_s} s"
        time.sleep(0.01)
