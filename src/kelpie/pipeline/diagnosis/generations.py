"""Generations and removals of groups as the doctor's rules want them: rows of recent_generation."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa

from kelpie.observations import OFFSETS_TOPIC
from kelpie.observations.encoding import dumps, kind_of
from kelpie.pipeline.diagnosis.recent import FEW_GENERATIONS, MOST_GENERATIONS, WEEK_MS
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.moments import moment
from kelpie.pipeline.transforms.group_records import ENTRY_COLUMNS, observed_groups

RECORD = [
    *("group", "offsets_partition", "log_offset", "at", "protocol_type", "protocol", "leader"),
    *ENTRY_COLUMNS,
]
"""The columns of records that are needed."""


def generation_rows(records: pa.Table, topic_names: Mapping[bytes, str], cluster: str) -> pa.Table:
    """`records`: each once, dated, all that there are of each group."""
    rows = sorted(
        records.to_pylist(), key=lambda row: (row["group"], row["offsets_partition"], row["log_offset"])
    )
    made = [
        {"cluster": cluster, "group": group, **row}
        for group, of_group in groupby(rows, key=lambda row: row["group"])
        for row in _of_group(of_group, topic_names)
    ]
    return pa.Table.from_pylist(made, STORED["recent_generation"].schema)


def _of_group(
    records: Iterable[dict[str, Any]], topic_names: Mapping[bytes, str]
) -> Iterator[dict[str, Any]]:
    named = [{**row, "source": f"{OFFSETS_TOPIC}-{row['offsets_partition']}"} for row in records]
    seen = list(observed_groups(named, dict(topic_names)))
    newest = max((row.at for row in seen if row.at is not None), default=0)
    first, few = len(seen) - MOST_GENERATIONS, len(seen) - FEW_GENERATIONS
    for place, row in enumerate(seen):
        is_young = row.at is None or row.at >= newest - WEEK_MS
        if place >= few or (place >= first and is_young):
            yield {"place": place, "kind": kind_of(row), "at": moment(row.at), "body": dumps(row)}
