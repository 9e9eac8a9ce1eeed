"""Numbers pushed to a collector: a small server that decodes OpenTelemetry's protobuf."""

import gzip
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from kelpie.examination import Examination
from kelpie.model.selection import Selection
from kelpie.web.exposition import Limits
from kelpie.web.otlp import OtlpPush
from kelpie.web.watch import Watch
from tests.web.looks import a_healthy_cluster, a_look
from tests.web.scraping import scraped
from tests.web.watching import client, looked


class Collector:
    def __init__(self) -> None:
        self.status = 200
        self.requests: list[ExportMetricsServiceRequest] = []
        self.paths: list[str] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.paths.append(self.path)
                collector.requests.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(collector.status)
                self.send_header("location", "http://127.0.0.1:1/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def values(self) -> dict[str, set[tuple[frozenset[tuple[str, str]], float]]]:
        """By name: labels and value of each point."""
        found: dict[str, set[tuple[frozenset[tuple[str, str]], float]]] = {}
        for request in self.requests:
            for metric in request.resource_metrics[0].scope_metrics[0].metrics:
                points = metric.sum.data_points or metric.gauge.data_points
                assert bool(metric.sum.data_points) == metric.name.endswith("_total")
                for point in points:
                    labels = frozenset((each.key, each.value.string_value) for each in point.attributes)
                    value = point.as_int if point.HasField("as_int") else point.as_double
                    found.setdefault(metric.name, set()).add((labels, float(value)))
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def watch() -> Iterator[Watch]:
    rows = a_healthy_cluster("billing", "audit")
    with Watch("main", Examination(evidence=rows), 3600) as made:
        looked(made)
        yield made


def test_what_is_pushed_is_what_metrics_has(
    collector: Collector, watch: Watch, wait_until: Callable[..., None]
) -> None:
    with OtlpPush([watch], collector.url):
        wait_until(lambda: "kelpie_group_partition_lag" in collector.values())
    with client([watch]) as browser:
        samples = scraped(browser)
    of_process = {"kelpie_look_age_seconds", "kelpie_failed_looks", "kelpie_metrics_left_out_groups"}
    assert collector.values() == {
        name: {(frozenset(labels.items()), value) for labels, value in rows}
        for name, rows in samples.items()
        if name not in of_process
    }
    assert set(collector.paths) == {"/v1/metrics"}


def test_groups_can_be_chosen(collector: Collector, watch: Watch, wait_until: Callable[..., None]) -> None:
    with OtlpPush([watch], collector.url, Limits(Selection(["audit"]), by_partition=False)):
        wait_until(lambda: "kelpie_group_lag" in collector.values())
    assert [dict(labels)["group"] for labels, _ in collector.values()["kelpie_group_lag"]] == ["audit"]
    assert "kelpie_group_partition_lag" not in collector.values()


@pytest.mark.parametrize("status", [400, 307])
def test_failures_are_said_once_and_so_is_their_end(
    status: int, collector: Collector, watch: Watch, wait_until: Callable[..., None]
) -> None:
    """A redirect is a failure, too: nothing goes to the place that it names."""
    said: list[str] = []
    collector.status = status
    with OtlpPush([watch], collector.url, say=said.append, limit_s=2):
        wait_until(lambda: said)
        watch.meter.take(a_look(a_healthy_cluster("billing")))
        wait_until(lambda: len(collector.requests) >= 2)
        collector.status = 200
        watch.meter.take(a_look(a_healthy_cluster("billing")))
        wait_until(lambda: len(said) >= 2)
    assert ["could not be pushed" in line for line in said] == [True, False]


def test_an_answer_without_an_end_is_not_read(watch: Watch, wait_until: Callable[..., None]) -> None:
    """The library read it into memory, as long as it came."""
    said: list[str] = []
    sent: list[int] = []

    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(400)
            self.end_headers()
            total = 0
            try:
                while total < 200_000_000:
                    total += self.wfile.write(b"x" * 100_000)
            except OSError:
                pass
            sent.append(total)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with OtlpPush([watch], f"http://127.0.0.1:{server.server_address[1]}", say=said.append, limit_s=60):
        wait_until(lambda: said and sent)
    server.shutdown()
    server.server_close()
    assert sent[0] < 50_000_000  # What the buffers of two sockets take, at most.


def test_a_collector_that_is_away_delays_nothing(watch: Watch, wait_until: Callable[..., None]) -> None:
    said: list[str] = []
    with OtlpPush([watch], "http://127.0.0.1:1", say=said.append, limit_s=1):
        wait_until(lambda: said)
        assert watch.meter.take(a_look(a_healthy_cluster("billing"))).answers
    assert len(said) == 1
