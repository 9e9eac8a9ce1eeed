"""How templates write numbers, times and addresses."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from kelpie.model.quoting import harmless
from kelpie.model.time import Instant, iso_time
from kelpie.model.words import counted, duration, moment

UNKNOWN = "–"


def number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def span(ms: float | None) -> str:
    return UNKNOWN if ms is None else duration(ms)


def time_of(at: Instant | None) -> str:
    return UNKNOWN if at is None else moment(at)


def machine_time(at: Instant) -> str:
    """For the attribute `datetime`."""
    return iso_time(at)


def trend(change: float | None) -> str:
    """Records a minute, with a sign."""
    if change is None:
        return UNKNOWN
    return "±0" if abs(change) < 0.5 else f"{change:+,.0f}"


def group_address(group: str, cluster: str) -> str:
    return f"/clusters/{quote(cluster, safe='')}/group?{urlencode({'name': group})}"


def cluster_address(cluster: str, page: str = "overview") -> str:
    return f"/clusters/{quote(cluster, safe='')}/{page}"


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "span": span,
    "moment": time_of,
    "machine_time": machine_time,
    "trend": trend,
    "counted": counted,
    "harmless": harmless,
    "group_address": group_address,
    "cluster_address": cluster_address,
}
