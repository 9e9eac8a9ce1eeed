"""How long requests take, by API: what a summary of Prometheus needs."""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

WINDOW_S = 60.0
"""Quantiles are those of the last minute, as KoP's (kopPrometheusStatsLatencyRolloverSeconds)."""
_MOST_SAMPLES = 1_024
"""Of more requests in that time, the latest count."""


@dataclass(slots=True)
class Summary:
    count: int = 0
    sum_ms: float = 0.0
    _recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_MOST_SAMPLES))
    """When it was, in seconds, and how long it took."""

    def add(self, now_s: float, took_ms: float) -> None:
        self.count += 1
        self.sum_ms += took_ms
        self._recent.append((now_s, took_ms))

    def quantiles(self, wanted: Iterable[float], now_s: float) -> list[float]:
        """By the nearest rank; NaN if nothing happened in the window."""
        recent = sorted(took_ms for at_s, took_ms in self._recent if at_s > now_s - WINDOW_S)
        if not recent:
            return [math.nan for _ in wanted]
        return [recent[max(0, math.ceil(quantile * len(recent)) - 1)] for quantile in wanted]


class Latencies:
    """By API key, and whether the answer was without error."""

    def __init__(self) -> None:
        self.handled: dict[tuple[int, bool], Summary] = {}
        """From the beginning of the work to the answer."""
        self.queued: dict[tuple[int, bool], Summary] = {}
        """From the arrival of the request to the beginning of the work."""

    def add(self, api_key: int, *, success: bool, arrived_s: float, begun_s: float, now_s: float) -> None:
        """Times in seconds."""
        key = (api_key, success)
        _summary(self.queued, key).add(now_s, (begun_s - arrived_s) * 1000)
        _summary(self.handled, key).add(now_s, (now_s - begun_s) * 1000)


def _summary(summaries: dict[tuple[int, bool], Summary], key: tuple[int, bool]) -> Summary:
    summary = summaries.get(key)
    if summary is None:
        summary = summaries[key] = Summary()
    return summary
