"""The doctor's rules, group by group, on Spark: the same functions that the live doctor calls.

All rows of a group, of whatever table, come together in one task as its case; what concerns the cluster as a
whole is small, made once on the driver and handed to every task. Of a position's commits the newest count, as
with the live doctor, who reads the end of the offsets topic: so no group is too busy for a task.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build_case
from kelpie.doctor.diagnosis import diagnose
from kelpie.model.time import Instant
from kelpie.observations import Listing, Observations
from kelpie.observations.events import FACTS
from kelpie.observations.offsets_topic import add_row
from kelpie.pipeline.diagnosis.findings import finding_row, open_row
from kelpie.pipeline.diagnosis.history import commit_of, generations_of
from kelpie.pipeline.sources.inventory import instant
from kelpie.pipeline.sources.logs.intake import event_of
from kelpie.pipeline.sources.snapshots.chosen import chosen_rows
from kelpie.pipeline.sources.snapshots.outputs import observed
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.types import BOOLEAN, INT, STRING, STRINGS

MOST_COMMITS = 2_000
"""Of one group and partition; more than the live doctor sees."""
CASE, FINDING, OPEN = "case", "finding", "open"

_COMMIT = [
    "group",
    "offsets_partition",
    "log_offset",
    "at",
    "topic",
    "partition",
    "offset",
    "leader_epoch",
    "metadata",
    "expires",
    "is_transactional",
    "source",
]
_RECORD = ["group", "offsets_partition", "log_offset", "at", "written", "key", "value", "source"]
_EVENT = ["at", "source", "line", "part", "kind", *FACTS, "details", "text"]
_ROW = ["group", "snapshot", "ordinal", "kind", "body", "source"]

JUDGED = pa.schema(
    [
        pa.field("what", STRING),
        *TABLES["findings"].schema,
        pa.field("missing", STRINGS),
        pa.field("offsets_partition", INT),
        pa.field("state", STRING),
        pa.field("member_count", INT),
        pa.field("known_from", STRINGS),
        pa.field("is_listed", BOOLEAN),
    ]
)
"""A row for the group itself (`case`), for each finding and for each open question."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What every task needs to know."""

    name: str
    cluster: ClusterView
    listings: tuple[tuple[Listing, frozenset[str]], ...]
    history_from: Mapping[int, Instant]
    topic_names: Mapping[bytes, str]


def history_from(commits: DataFrame, records: DataFrame) -> dict[int, Instant]:
    """Since when records are known, by offsets partition."""
    both = commits.select("offsets_partition", "at").unionByName(records.select("offsets_partition", "at"))
    first = both.groupBy("offsets_partition").agg(F.min("at").alias("at")).collect()
    found = {row["offsets_partition"]: instant(row["at"]) for row in first}
    return {partition: at for partition, at in found.items() if at is not None}


def end_of(*frames: DataFrame) -> Instant | None:
    """The newest `at` of all."""
    moments = [frame.select("at") for frame in frames]
    return instant(reduce(DataFrame.unionByName, moments).agg(F.max("at")).collect()[0][0])


def judge(
    spark: SparkSession,
    shared: Shared,
    *,
    commits: DataFrame,
    records: DataFrame,
    events: DataFrame,
    snapshot: DataFrame,
) -> DataFrame:
    """Rows as JUDGED says. `commits` and `records` are those of `history`, with time and source."""
    newest = Window.partitionBy("group", "topic", "partition").orderBy(F.desc("log_offset"))
    recent = commits.withColumn("place", F.row_number().over(newest)).where(F.col("place") <= MOST_COMMITS)
    everything = (
        _of("commit", recent, _COMMIT)
        .unionByName(_of("record", records, _RECORD), allowMissingColumns=True)
        .unionByName(_of("event", events, _EVENT), allowMissingColumns=True)
        .unionByName(_of("row", chosen_rows(snapshot, shared.name), _ROW), allowMissingColumns=True)
    )
    listed = sorted({group for listing, _ in shared.listings for group in listing.groups})
    if listed:
        named = spark.createDataFrame([(group, "listed") for group in listed], "group string, origin string")
        everything = everything.unionByName(named, allowMissingColumns=True)
    handed = spark.sparkContext.broadcast(shared)

    def of_group(table: pa.Table) -> pa.Table:
        return pa.Table.from_pylist(list(_judged(handed.value, table.to_pylist())), JUDGED)

    return everything.groupBy("group").applyInArrow(
        of_group, from_arrow_schema(JUDGED, prefer_timestamp_ntz=False)
    )


def _of(origin: str, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    mine = frame.where(F.col("group").isNotNull())
    return mine.select(F.lit(origin).alias("origin"), *columns)


def _judged(shared: Shared, rows: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    case = _case(shared, rows)
    if case is None:
        return
    findings, undecided = diagnose(case)
    home, state = case.offsets_partition, case.state
    yield {
        "what": CASE,
        "cluster": shared.name,
        "group": case.group,
        "offsets_partition": home.partition if home is not None else None,
        "state": state.state if state is not None else None,
        "member_count": len(state.members) if state is not None else None,
        "known_from": list(case.known_from),
        "is_listed": case.listed,
    }
    for finding in findings:
        yield {"what": FINDING, **finding_row(finding, shared.name)}
    for question in undecided:
        yield {"what": OPEN, **open_row(question, shared.name)}


def _case(shared: Shared, rows: Sequence[dict[str, Any]]) -> Case | None:
    """None: nobody knows of such a group; somebody merely asked for it."""
    group: str = rows[0]["group"]
    found = Observations()
    of_topic = [row for row in rows if row["origin"] in ("commit", "record")]
    if of_topic:
        first = min(of_topic, key=_in_log)
        found.known_groups[group] = f"{first['source']}@{first['log_offset']}"
    for row in _origin(rows, "commit", _in_log):
        add_row(found, commit_of(row))
    own: list[Any] = list(generations_of(_origin(rows, "record", _in_log), dict(shared.topic_names)))
    for each in own:
        add_row(found, each)
    found.events = [event_of(row) for row in _origin(rows, "event", _in_file)]
    found.add(observed(_origin(rows, "row", lambda row: (row["snapshot"], row["ordinal"]))))
    listings = [replace(it, groups=(group,) if group in named else ()) for it, named in shared.listings]
    if not _is_known(found) and not any(listing.groups for listing in listings):
        return None
    return build_case(
        group,
        found,
        shared.cluster,
        listings=listings,
        history_from=_history(shared, group, [*found.commits, *found.generations]),
    )


def _history(shared: Shared, group: str, rows: Sequence[Any]) -> Instant | None:
    home = Case(group, shared.cluster).offsets_partition
    if home is not None:
        return shared.history_from.get(home.partition)
    return min((row.at for row in rows if row.at is not None), default=None)


def _is_known(found: Observations) -> bool:
    kinds: tuple[Sequence[Any], ...] = (
        found.answers,
        found.states,
        found.generations,
        found.commits,
        found.committed,
        found.events,
    )
    return bool(found.known_groups) or any(kinds)


def _origin(
    rows: Sequence[dict[str, Any]], origin: str, order: Callable[[dict[str, Any]], Any]
) -> list[dict[str, Any]]:
    return sorted((row for row in rows if row["origin"] == origin), key=order)


def _in_log(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["offsets_partition"], row["log_offset"]


def _in_file(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["source"], row["line"], row["part"] or 0
