"""Generations and removals of groups as the doctor's rules want them: rows of recent_generation."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa

from kelpie.observations import OFFSETS_TOPIC
from kelpie.observations.encoding import dumps, kind_of, loads
from kelpie.pipeline.diagnosis.recent import FEW_GENERATIONS, MOST_GENERATIONS, WEEK_MS
from kelpie.pipeline.plain_groups import NOTHING, Tail
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.moments import moment
from kelpie.pipeline.transforms.group_records import ENTRY_COLUMNS, observed_groups

RECORD = [
    *("group", "offsets_partition", "log_offset", "at", "protocol_type", "protocol", "leader"),
    *ENTRY_COLUMNS,
]
"""The columns of records that are needed."""
_WEEK = timedelta(milliseconds=WEEK_MS)
Row = Mapping[str, Any]


def generation_rows(records: pa.Table, topic_names: Mapping[bytes, str], cluster: str) -> pa.Table:
    """`records`: each once, dated, all that there are of each group."""
    rows = sorted(
        records.to_pylist(), key=lambda row: (row["group"], row["offsets_partition"], row["log_offset"])
    )
    made = {
        group: _recent(_observed(of_group, topic_names))
        for group, of_group in groupby(rows, key=lambda row: row["group"])
    }
    return as_table(made, cluster)


def as_table(rows: Mapping[str, Iterable[Row]], cluster: str) -> pa.Table:
    """`rows`: by group."""
    made = [
        {**row, "cluster": cluster, "group": group} for group, of_group in rows.items() for row in of_group
    ]
    return pa.Table.from_pylist(made, STORED["recent_generation"].schema)


def of_tail(carried: Iterable[Row], tail: Tail, topic_names: Mapping[bytes, str]) -> list[Row] | None:
    """The rows of one group, by the end of its history.

    `carried`: its rows as the last round left them. None: they end before the tail begins.
    """
    records = [{**row, "at": row["written"]} for row in tail.records]
    if tail.before is NOTHING:
        return _recent(_observed(records, topic_names))
    # A tail that was cut has records of classic groups only: each makes one row, which names its place.
    first = f"@{records[0]['log_offset']}"
    ordered = sorted(carried, key=lambda row: row["place"])
    places = [row["place"] for row in ordered if loads(row["kind"], row["body"]).source.endswith(first)]
    if not places:
        return None
    earlier = [row for row in ordered if row["place"] < places[0]]
    return _recent([*earlier, *_observed(records, topic_names, places[0])])


def _observed(
    records: Iterable[dict[str, Any]], topic_names: Mapping[bytes, str], first: int = 0
) -> list[Row]:
    named = [{**row, "source": f"{OFFSETS_TOPIC}-{row['offsets_partition']}"} for row in records]
    return [
        {"place": place, "kind": kind_of(row), "at": moment(row.at), "body": dumps(row)}
        for place, row in enumerate(observed_groups(named, dict(topic_names)), first)
    ]


def _recent(rows: Sequence[Row]) -> list[Row]:
    """Those that rules are asked about."""
    count = rows[-1]["place"] + 1 if rows else 0
    newest = max((row["at"] for row in rows if row["at"] is not None), default=None)
    return [
        row
        for row in rows
        if row["place"] >= count - FEW_GENERATIONS
        or (
            row["place"] >= count - MOST_GENERATIONS
            and (row["at"] is None or newest is None or row["at"] >= newest - _WEEK)
        )
    ]
