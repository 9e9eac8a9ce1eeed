"""Samples, deltas and evidence for tests, as Arrow tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.traffic.evidence_rows import ASSIGNED, COMMITTED, EVIDENCE
from kelpie.pipeline.traffic.growth import as_told
from tests.pipeline.rows import at

Place = tuple[str, int, str | None]
"""Topic, partition, label."""


def sample_rows(
    values: Mapping[Place, int], second: float, broker: str = "broker 1", source: str | None = None
) -> list[dict[str, Any]]:
    """One scrape: messages by series; a message has 100 bytes, and two are an entry."""
    scrape = {"broker": broker, "at": at(second), "source": source or f"{broker}/{second:07}.prom"}
    if not values:
        return [scrape]
    return [
        {
            **scrape,
            "topic": topic,
            "partition": partition,
            "group": group,
            "messages": messages,
            "bytes": 100 * messages,
            "entries": (messages + 1) // 2,
        }
        for (topic, partition, group), messages in values.items()
    ]


def samples(*scrapes: Sequence[Mapping[str, Any]]) -> pa.Table:
    rows = [row for scrape in scrapes for row in scrape]
    return as_told(pa.Table.from_pylist(rows, TABLES["traffic_sample"].schema), told=False)


def a_delta(
    began: float | None,
    ended: float,
    messages: int = 100,
    beside: Sequence[tuple[str, int, bool]] = (),
    **more: Any,
) -> dict[str, Any]:
    """A row of unattributed_traffic. `beside`: group, messages, whether it is steady."""
    return {
        "broker": "broker 1",
        "topic": "t",
        "partition": 0,
        "label": "",
        "began": None if began is None else at(began),
        "ended": at(ended),
        "messages": messages,
        "bytes": 10 * messages,
        "entries": messages,
        "after_restart": False,
        "has_labels": True,
        "beside": [
            {"group": group, "messages": count, "is_steady": steady} for group, count, steady in beside
        ],
        **more,
    }


def deltas(*rows: Mapping[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), TABLES["unattributed_traffic"].schema)


def assigned(group: str, began: float, ended: float, *, certain: bool = True, **more: Any) -> dict[str, Any]:
    return _evidence(ASSIGNED, group, began, ended, is_certain=certain, advance=0, **more)


def committed(group: str, began: float, ended: float, advance: int) -> dict[str, Any]:
    return _evidence(COMMITTED, group, began, ended, is_certain=False, advance=advance)


def _evidence(kind: str, group: str, began: float, ended: float, **more: Any) -> dict[str, Any]:
    place = {"kind": kind, "topic": "t", "partition": 0, "group": group}
    return {**place, "began": at(began), "ended": at(ended), **more}


def evidence(*rows: Mapping[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), EVIDENCE)
