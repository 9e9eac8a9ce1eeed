"""What a broker counts, under the names and labels of KoP (Kafka on Pulsar), for Prometheus.

The text is correct: names are escaped, and a family has one TYPE line. KoP writes names as they are, and a
TYPE line for each series; `verbatim` does that, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from kelpie.attribution.counters import Amount
from kelpie.lab.broker_life import BrokerLife
from kelpie.lab.latencies import Summary
from kelpie.model.prometheus_text import escaped, family, sample
from kelpie.model.time import Instant
from kelpie.wire.apis import NAMES

Of = TypeVar("Of")

_PREFIX = "kop_server_"
_CLUSTER = {"cluster": "lab"}
_QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999, 0.9999, 1.0)
_OUT = (
    ("MESSAGE_OUT", "messages", "Messages that consumers have read."),
    ("BYTES_OUT", "bytes", "Bytes of the batches that consumers have read."),
    ("ENTRIES_OUT", "entries", "Batches that consumers have read."),
)
_IN = (
    ("MESSAGE_IN", "messages", "Messages that producers have written."),
    ("BYTES_IN", "bytes", "Bytes of the batches that producers have written."),
)


def kop_exposition(
    life: BrokerLife, connections: int, now_s: float, *, at: Instant | None = None, verbatim: bool = False
) -> str:
    """A scrape of one broker. `at`: the time that every sample carries; none if left out."""
    line = partial(sample, at=at, quote=str if verbatim else escaped)
    sent = sorted(life.traffic.sent.amounts.items())
    received = sorted(life.traffic.received.items())
    families: list[tuple[str, str, str, list[str]]] = []
    for name, field, text in _OUT:
        samples = [
            line(_CLUSTER | {"group": of.group, "partition": of.partition, "topic": of.topic}, value)
            for of, value in _values(sent, field)
        ]
        families.append((name, "counter", text, samples))
    for name, field, text in _IN:
        samples = [
            line(_CLUSTER | {"partition": of.partition, "topic": of.topic}, value)
            for of, value in _values(received, field)
        ]
        families.append((name, "counter", text, samples))
    for name, text, summaries in (
        ("REQUEST_LATENCY", "Milliseconds from the beginning of the work to the answer.", "handled"),
        ("REQUEST_QUEUED_LATENCY", "Milliseconds from the arrival to the beginning of the work.", "queued"),
    ):
        by_api: Mapping[tuple[int, bool], Summary] = getattr(life.latencies, summaries)
        samples = [
            line(labels, value, suffix=suffix) for suffix, labels, value in _summary_lines(by_api, now_s)
        ]
        families.append((name, "summary", text, samples))
    for name, kind, text, value in (
        ("ALIVE_CHANNEL_COUNT", "gauge", "Open connections.", connections),
        ("NETWORK_TOTAL_BYTES_IN", "counter", "Bytes of requests.", life.bytes_in),
        ("NETWORK_TOTAL_BYTES_OUT", "counter", "Bytes of responses.", life.bytes_out),
    ):
        families.append((name, kind, text, [line(_CLUSTER, value)]))
    return "".join(
        _repeated(_PREFIX + name, kind, samples) if verbatim else family(_PREFIX + name, kind, text, samples)
        for name, kind, text, samples in families
    )


def _values(amounts: Iterable[tuple[Of, Amount]], field: str) -> Iterator[tuple[Of, int]]:
    for of, amount in amounts:
        yield of, getattr(amount, field)


def _summary_lines(
    by_api: Mapping[tuple[int, bool], Summary], now_s: float
) -> Iterator[tuple[str, dict[str, object], float]]:
    for (api_key, success), summary in sorted(by_api.items()):
        labels: dict[str, object] = {
            "success": str(success).lower(),
            **_CLUSTER,
            "request": NAMES.get(api_key, str(api_key)),
        }
        for quantile, value in zip(_QUANTILES, summary.quantiles(_QUANTILES, now_s), strict=True):
            yield "", labels | {"quantile": quantile}, value
        yield "_count", labels, summary.count
        yield "_sum", labels, summary.sum_ms


def _repeated(name: str, kind: str, samples: Iterable[str]) -> str:
    """As KoP writes it: a TYPE line again and again, and no HELP."""
    return "".join(f"# TYPE {name} {kind}\n{name}{line}\n" for line in samples)
