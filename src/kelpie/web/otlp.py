"""The numbers of /metrics under Kelpie's names, pushed to an OpenTelemetry collector after each look.

A thread of its own sends them, so that a collector that is slow or away delays neither looks nor pages. What
could not be sent is not kept: the next look has newer numbers. Failures are said once, until it works again.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from requests.adapters import HTTPAdapter

from kelpie.web.exposition import Limits
from kelpie.web.families import COUNTER, Family, Row, rows_of
from kelpie.web.metrics import KelpieExporter
from kelpie.web.numbers import ClusterNumbers
from kelpie.web.watch import Watch

PATH = "/v1/metrics"
LIMIT_S = 10.0
"""Of one push, with all attempts."""
POINTS_PER_REQUEST = 5_000
_LONGEST_ANSWER = 64 * 1024
_LOOKS_AGAIN_S = 1.0
_LIBRARY = "opentelemetry"


class OtlpPush:
    """`with OtlpPush(watches, url): …`. `say` gets a line when pushes begin to fail, and when that ends."""

    def __init__(
        self,
        watches: Sequence[Watch],
        url: str,
        limits: Limits | None = None,
        *,
        say: Callable[[str], None] = print,
        limit_s: float = LIMIT_S,
    ) -> None:
        """`url`: where the collector is; /v1/metrics if it has no path."""
        self._watches = list(watches)
        self._limits = limits or Limits()
        self._say = say
        self._is_failing = False
        self._began = time.time_ns()
        self._ends = threading.Event()
        logging.getLogger(_LIBRARY).setLevel(logging.CRITICAL)  # `say` has the words.
        session = requests.Session()
        session.max_redirects = 0  # A secret in a header would go along.
        for scheme in ("http://", "https://"):
            session.mount(scheme, _ShortAnswers())
        self._host = urlsplit(url).hostname or url
        self._exporter = OTLPMetricExporter(
            url if urlsplit(url).path.strip("/") else url.rstrip("/") + PATH,
            timeout=limit_s,
            session=session,
            max_export_batch_size=POINTS_PER_REQUEST,
        )
        self._thread = threading.Thread(target=self._push_again_and_again, name="kelpie-otlp", daemon=True)

    def __enter__(self) -> "OtlpPush":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._exporter.shutdown()
        self._thread.join(LIMIT_S)

    def _push_again_and_again(self) -> None:
        pushed: dict[str, ClusterNumbers] = {}
        while not self._ends.is_set():
            for watch in self._watches:
                numbers = watch.meter.latest
                if numbers is not None and pushed.get(watch.name) is not numbers:
                    pushed[watch.name] = numbers
                    self._push(watch.name, numbers)
            self._ends.wait(_LOOKS_AGAIN_S)

    def _push(self, name: str, numbers: ClusterNumbers) -> None:
        try:
            result = self._exporter.export(_data(_rows(name, numbers, self._limits), numbers, self._began))
        except Exception as error:
            # Whatever the library, or the collector's answer, does: looks and pages go on.
            self._failed(type(error).__name__)
            return
        if result is not MetricExportResult.SUCCESS:
            self._failed("it was not taken")
        elif self._is_failing:
            self._is_failing = False
            self._say(f"Numbers reach {self._host} again.")

    def _failed(self, why: str) -> None:
        if not self._is_failing and not self._ends.is_set():
            self._say(f"Numbers could not be pushed to {self._host} ({why}). The next look tries again.")
        self._is_failing = True


class _ShortAnswers(HTTPAdapter):
    """The library reads whatever a collector answers, however long. Here it ends after some kilobytes."""

    def send(self, *args: Any, **settings: Any) -> requests.Response:
        response = super().send(*args, **settings)
        response.raw = _Beginning(response.raw)
        return response


class _Beginning:
    """The beginning of an answer; what follows is not read, and its connection not used again."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._left = _LONGEST_ANSWER

    def read(self, size: int) -> bytes:
        data: bytes = self._raw.read(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        if not self._left:
            self._raw.close()
        return data

    def close(self) -> None:
        self._raw.close()

    def release_conn(self) -> None:
        self._raw.release_conn()


def _rows(name: str, numbers: ClusterNumbers, limits: Limits) -> Iterator[Row]:
    exporter, left = KelpieExporter(name), limits.most
    yield from exporter.of_cluster(numbers)
    for group in limits.chosen(numbers):
        if left is not None and left <= 0:
            return
        samples = exporter.of_group(group, numbers, by_partition=limits.by_partition)
        rows = list(rows_of(samples))
        left = None if left is None else left - len(rows)
        yield from rows


def _data(rows: Iterator[Row], numbers: ClusterNumbers, began_ns: int) -> MetricsData:
    points: defaultdict[Family, list[NumberDataPoint]] = defaultdict(list)
    at_ns = numbers.at * 1_000_000
    for family, of, place, value in rows:
        start = began_ns if family.kind == COUNTER else 0
        points[family].append(NumberDataPoint(dict(of.pairs + place.pairs), start, at_ns, value))
    metrics = [Metric(family.name, family.help, "", _values(family, data)) for family, data in points.items()]
    scope = ScopeMetrics(InstrumentationScope("kelpie"), metrics, "")
    resource = Resource({"service.name": "kelpie"})
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _values(family: Family, points: list[NumberDataPoint]) -> Gauge | Sum:
    if family.kind == COUNTER:
        return Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Gauge(points)
