"""How far the logs of the partitions of the offsets topic were read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.pipeline.tables.types import INT, LONG, STRING

_EPOCHS = pa.schema({CLUSTER: STRING, "offsets_partition": INT, "log_epoch": INT, "epoch_began": LONG})


@dataclass(frozen=True, slots=True)
class Seen:
    """How far the logs of the offsets partitions were read, by the rows of one table."""

    ends: Mapping[int, int] = field(default_factory=dict)
    """The highest offset of each partition."""
    epochs: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Where each leader epoch of each partition began."""

    def ended(self, partition: int, epoch: int) -> int | None:
        began = [at for other, at in self.epochs.get(partition, {}).items() if other > epoch]
        return min(began, default=None)

    def with_rows(self, rows: pa.Table) -> "Seen":
        """`rows`: offsets_partition, log_offset, log_epoch."""
        ends = read_on(self.ends, rows)
        epochs = {partition: dict(known) for partition, known in self.epochs.items()}
        lowest = rows.group_by(["offsets_partition", "log_epoch"]).aggregate([("log_offset", "min")])
        for row in lowest.to_pylist():
            if row["log_epoch"] is not None:
                known = epochs.setdefault(row["offsets_partition"], {})
                began = row["log_offset_min"]
                known[row["log_epoch"]] = min(known.get(row["log_epoch"], began), began)
        return Seen(ends, epochs)

    def without(self, partitions: Collection[int]) -> "Seen":
        ends = {partition: end for partition, end in self.ends.items() if partition not in partitions}
        return Seen(ends, {name: known for name, known in self.epochs.items() if name not in partitions})


def read_on(before: Mapping[int, int], places: pa.Table) -> dict[int, int]:
    """The highest offset that was read of each partition. `places`: offsets_partition, log_offset."""
    ends = dict(before)
    for row in places.group_by("offsets_partition").aggregate([("log_offset", "max")]).to_pylist():
        partition = row["offsets_partition"]
        ends[partition] = max(ends.get(partition, -1), row["log_offset_max"])
    return ends


def is_behind(places: pa.Table, ends: Mapping[int, int]) -> bool:
    """Whether any of these places comes before one that was read of its partition."""
    first = places.group_by("offsets_partition").aggregate([("log_offset", "min")]).to_pylist()
    return any(row["log_offset_min"] <= ends.get(row["offsets_partition"], -1) for row in first)


def standing(seen: Seen, records: pa.Table) -> pa.Table:
    """Without records of an older leader at offsets where a newer one has written."""
    names = ["offsets_partition", "log_epoch"]
    known = records.select(names).group_by(names).aggregate([]).to_pylist()
    ended = {
        (row["offsets_partition"], row["log_epoch"]): seen.ended(row["offsets_partition"], row["log_epoch"])
        for row in known
        if row["log_epoch"] is not None
    }
    if all(end is None for end in ended.values()):
        return records
    columns = (records[name].to_pylist() for name in (*names, "log_offset"))
    stands = [
        (end := ended.get((partition, epoch))) is None or offset < end
        for partition, epoch, offset in zip(*columns, strict=True)
    ]
    return records.filter(pa.array(stands, pa.bool_()))


def late_groups(places: pa.Table, ends: Mapping[int, int]) -> set[str]:
    """Groups with a row at a place that was read already. `places`: with the group of each."""
    columns = (places[name].to_pylist() for name in ("group", "offsets_partition", "log_offset"))
    return {
        group for group, partition, offset in zip(*columns, strict=True) if offset <= ends.get(partition, -1)
    }


def begins_earlier(before: Seen, after: Seen) -> bool:
    """Whether a leader epoch began at an offset that was read already: there it ends records of others."""
    return any(
        began != before.epochs.get(partition, {}).get(epoch) and began <= before.ends.get(partition, -1)
        for partition, epochs in after.epochs.items()
        for epoch, began in epochs.items()
    )


def seen_in(seen: Seen, rows: DataFrame | None) -> Seen:
    """With what these rows tell."""
    if rows is None:
        return seen
    places = rows.groupBy("offsets_partition", "log_epoch").agg(
        F.min("log_offset").alias("first"), F.max("log_offset").alias("last")
    )
    bounds = places.toArrow()
    names = ["offsets_partition", "log_epoch", "log_offset"]
    for column in ("first", "last"):
        of_column = bounds.select(["offsets_partition", "log_epoch", column]).rename_columns(names)
        seen = seen.with_rows(of_column)
    return seen


def epoch_rows(tables: ClusterTables, seen: Seen) -> DataFrame | None:
    """Where leader epochs began, as `transforms.commits` wants it; None: nothing was read."""
    rows = [
        (tables.cluster, partition, epoch, began)
        for partition, epochs in seen.epochs.items()
        for epoch, began in epochs.items()
    ]
    if not rows:
        return None
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), _EPOCHS.types, strict=True)
    ]
    return frame_of_arrow(tables.spark, pa.table(columns, schema=_EPOCHS))
