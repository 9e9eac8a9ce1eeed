"""Groups of KIP-848: their many records folded into one row per epoch, group by group.

The state of a group follows from all its earlier records, so they come together in one task; the fold is that
of the doctor (`observations.group_epochs`). An epoch begins with its record. It is settled when every member
has reached this epoch or a later one and owns its target assignment. Its roster is taken at its end, for the
coordinator computes the assignment after the epoch began, and members reach it one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.model.names import TopicPartition
from kelpie.observations.group_epochs import GroupEpochs
from kelpie.observations.groups import Member
from kelpie.pipeline.spark.workers import spare_modules
from kelpie.pipeline.tables.silver import ROSTER
from kelpie.pipeline.tables.types import BOOLEAN, INT, LONG, MOMENT, STRING
from kelpie.pipeline.transforms.group_records import (
    CONSUMER_GROUP_TYPES,
    ENTRY_COLUMNS,
    coordinator_writes,
    entry_of,
)
from kelpie.wire.offsets_topic import RecordType

_EPOCHS = (RecordType.CONSUMER_GROUP_METADATA, RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA)

EPOCH = pa.schema(
    {
        "cluster": STRING,
        "group": STRING,
        "offsets_partition": INT,
        "log_offset": LONG,
        "generation": INT,
        "is_removal": BOOLEAN,
        "began": MOMENT,
        "settled": MOMENT,
        "protocol": STRING,
        "roster": ROSTER,
    }
)
_TYPES = list(map(int, CONSUMER_GROUP_TYPES))
_GROUP = ["cluster", "group"]
_NEEDED = ["cluster", "group", "offsets_partition", "log_offset", *ENTRY_COLUMNS]

Row = dict[str, Any]


def epochs(records: DataFrame) -> DataFrame:
    """Rows of the schema EPOCH: one per epoch, and one per removal of a group. `records`: each once."""
    of_consumer_groups = records.where(F.col("key_type").isin(*_TYPES)).select(*_NEEDED)
    return of_consumer_groups.groupBy(*_GROUP).applyInArrow(
        _of_group, from_arrow_schema(EPOCH, prefer_timestamp_ntz=False)
    )


def epochs_here(records: pa.Table) -> pa.Table:
    """The same for few records, in this process: the start of a Python process of Spark's takes longer."""
    of_consumer_groups = records.filter(pc.field("key_type").isin(_TYPES)).select(_NEEDED)
    places: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(of_consumer_groups.select(_GROUP).to_pylist()):
        places.setdefault((row["cluster"], row["group"]), []).append(place)
    return pa.concat_tables(
        [EPOCH.empty_table(), *(_of_group(of_consumer_groups.take(each)) for each in places.values())]
    )


def _of_group(table: pa.Table) -> pa.Table:
    spare_modules()
    ordered = table.sort_by([("offsets_partition", "ascending"), ("log_offset", "ascending")])
    rows = ordered.to_pylist()
    cluster, group = rows[0]["cluster"], rows[0]["group"]
    epochs = [{**epoch, "cluster": cluster, "group": group} for epoch in epochs_of(rows)]
    return pa.Table.from_pylist(epochs, EPOCH)


def epochs_of(records: Iterable[Row]) -> list[Row]:
    """Epochs of one group, and its removals. `records`: each once, in their order; others are passed over."""
    blank = dict.fromkeys(name for name in EPOCH.names if name not in _GROUP)
    wanted = (row for row in records if row["key_type"] in _TYPES)
    epochs: list[Row] = []
    for _, of_partition in groupby(wanted, key=lambda row: row["offsets_partition"]):
        epochs += _Fold().read(of_partition)
    # Only now: when an epoch was settled is known after it was handed out.
    return [{**blank, **epoch} for epoch in epochs]


class _Fold:
    """One group in one partition of the offsets topic."""

    def __init__(self) -> None:
        self._group = ""
        self._epochs = GroupEpochs({})
        self._newest: Row | None = None
        """The current epoch."""
        self._unsettled: list[Row] = []

    def read(self, records: Iterable[Row]) -> Iterator[Row]:
        for batch in coordinator_writes(records):
            written, self._group = batch[0]["written"], batch[0]["group"]
            if any(map(self._ends_epoch, batch)):
                yield from self._ended()
            self._epochs.begin_batch()
            for row in batch:
                if self._removes(row):
                    self._unsettled = []
                    yield self._row(row, is_removal=True)
            for offset, generation in self._epochs.end_batch(""):
                if self._newest is None:
                    self._newest = self._row(batch[0], log_offset=offset, generation=generation.generation)
                    self._unsettled.append(self._newest)
            if self._unsettled and self._epochs.is_settled(self._group):
                for row in self._unsettled:
                    row["settled"] = written
                self._unsettled = []
        yield from self._ended()

    def _ends_epoch(self, row: Row) -> bool:
        if row["key_type"] not in _EPOCHS or self._newest is None:
            return False
        return row["generation"] is None or row["generation"] > self._newest["generation"]

    def _ended(self) -> Iterator[Row]:
        """Completes the current epoch: now its roster is known."""
        known = self._epochs.group(self._group)
        if self._newest is not None and known is not None:
            roster = list(map(self._member, known.members))
            self._newest |= {"protocol": known.protocol or None, "roster": roster}
            yield self._newest
        self._newest = None

    def _removes(self, row: Row) -> bool:
        """Takes in one record. Whether it removes the group."""
        entry = entry_of(row)
        return entry is not None and self._epochs.record(entry) is not None

    def _row(self, record: Row, *, is_removal: bool = False, **more: Any) -> Row:
        return {
            "offsets_partition": record["offsets_partition"],
            "log_offset": record["log_offset"],
            "is_removal": is_removal,
            "began": record["written"],
            **more,
        }

    def _member(self, member: Member) -> Row:
        return {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.host,
            "epoch": member.epoch if member.epoch >= 0 else None,
            "subscribed": member.subscribed,
            "assigned": _positions(member.assigned or ()),
            "owned": _positions(self._epochs.owned(self._group, member.member_id)),
        }


def _positions(names: Sequence[TopicPartition]) -> list[Row]:
    return [{"topic": name.topic, "partition": name.partition} for name in names]
