"""findings, open_question and group_health: the doctor's rules on Spark, the same functions as live.

All rows of one group, from all tables, come together in one task and make its case. The picture of the
cluster is small: the driver makes it once and every task gets it. Of the commits of a position only the
newest are used, as with the live doctor, who reads the end of the offsets topic: so no group is too large
for a task.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.
from pyspark.sql.pandas.types import from_arrow_schema

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build_cases
from kelpie.doctor.diagnosis import diagnose, diagnose_cluster
from kelpie.model.time import Instant
from kelpie.observations import Listing, Observations
from kelpie.observations.events import FACTS
from kelpie.observations.offsets_topic import add_row
from kelpie.pipeline.diagnosis import history
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.diagnosis.findings import finding_row, open_row
from kelpie.pipeline.sources.logs.intake import event_of
from kelpie.pipeline.sources.snapshots.chosen import chosen_rows
from kelpie.pipeline.sources.snapshots.outputs import observed
from kelpie.pipeline.spark.cluster import is_local
from kelpie.pipeline.spark.workers import spare_modules
from kelpie.pipeline.storage.frames import ClusterTables, Rows, staged
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant, moment
from kelpie.pipeline.tables.types import BOOLEAN, INT, STRING, STRINGS
from kelpie.pipeline.transforms.group_records import ENTRY_COLUMNS, observed_groups
from kelpie.pipeline.transforms.health import health, shown
from kelpie.pipeline.transforms.zookeeper.events import configured

MOST_COMMITS = 2_000
"""Of one group and partition; more than the live doctor sees."""
CASE, FINDING, OPEN = "case", "finding", "open"

_PLACE = ["group", "offsets_partition", "log_offset", "at", "source"]
_COMMIT = [*_PLACE, "topic", "partition", "offset", "leader_epoch", "metadata", "expires", "is_transactional"]
_RECORD = [*_PLACE, *ENTRY_COLUMNS, "protocol_type", "protocol", "leader"]
_EVENT = ["at", "source", "line", "part", "kind", *FACTS, "details", "text"]
_SNAPSHOT = ["group", "snapshot", "ordinal", "kind", "body", "source"]
_READ = ("offset_commit", "group_metadata", "log_event", "cluster_snapshot")
_UNTIMED_KINDS = ("setting", "transaction", "epoch-end")
"""Kinds of snapshot rows whose time says nothing of when the cluster was looked at."""

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
        pa.field("in_zookeeper", BOOLEAN),
    ]
)
"""A row for the group itself (`case`), for each finding and for each open question."""
_GROUP_COLUMNS = ("cluster", "group", "offsets_partition", "state", "member_count", "known_from", "is_listed")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shared:
    """What every task needs to know."""

    name: str
    cluster: ClusterView
    listings: tuple[tuple[Listing, frozenset[str]], ...]
    history_from: Mapping[int, Instant]
    topic_names: Mapping[bytes, str]


def diagnosis_tables(tables: ClusterTables) -> Iterator[tuple[str, Rows]]:
    """Rows of findings, open_question and group_health."""
    files, commit = tables.frame("evidence_file"), tables.frame("offset_commit")
    events, snapshot = tables.frame("log_event"), tables.frame("cluster_snapshot")
    # Kept, on disk if need be: three queries read them.
    commits = history.commits(commit, tables.frame("transaction_marker"), files).persist()
    records = history.records(tables.frame("group_metadata"), commit, files).persist()
    known = KnownCluster(tables.lake, tables.cluster)
    view = known.view(newest_time(commits, records, events, timed(snapshot)) or 0)
    shared = Shared(
        tables.cluster,
        view,
        tuple((listing, frozenset(listing.groups)) for listing in known.observations.listings),
        _history_from(commits, records),
        known.topic_ids,
    )
    if any(of.startswith("consumer ") for of, _ in view.settings):
        events = configured(events, snapshot)
    everything = _everything(
        tables, shared, commits=commits, records=records, events=events, snapshot=snapshot
    )
    with _judged(tables, shared, everything) as stage:
        cases = stage.where(F.col("what") == CASE)
        of_kafka = cases.where(~F.col("in_zookeeper"))
        groups = sorted(row["group"] for row in of_kafka.select("group").collect())
        of_cluster, undecided = diagnose_cluster(view, [Case(group, view) for group in groups])
        cluster_findings = [finding_row(finding, tables.cluster) for finding in of_cluster]
        findings = _with_cluster(tables, stage, FINDING, "findings", cluster_findings)
        yield "findings", findings
        cluster_questions = [open_row(question, tables.cluster) for question in undecided]
        yield "open_question", _with_cluster(tables, stage, OPEN, "open_question", cluster_questions)
        yield (
            "group_health",
            health(
                cases.select(*_GROUP_COLUMNS),
                findings=findings,
                generations=tables.frame("group_generation"),
                rebalances=tables.frame("rebalance"),
                timeline=tables.frame("commit_timeline"),
                lag=tables.frame("lag"),
                shown=shown(snapshot),
                now=F.lit(moment(view.now)),
            ),
        )
    commits.unpersist()
    records.unpersist()


def _with_cluster(
    tables: ClusterTables, stage: DataFrame, what: str, name: str, rows: list[dict[str, Any]]
) -> DataFrame:
    """What tasks found of groups, and these rows about the cluster as a whole."""
    schema = TABLES[name].spark_schema
    of_groups = stage.where(F.col("what") == what).select(*schema.fieldNames())
    of_cluster = tables.spark.createDataFrame(pa.Table.from_pylist(rows, TABLES[name].schema), schema)
    return of_groups.unionByName(of_cluster)


def _history_from(commits: DataFrame, records: DataFrame) -> dict[int, Instant]:
    """Since when records are known, by offsets partition."""
    both = commits.select("offsets_partition", "at").unionByName(records.select("offsets_partition", "at"))
    first = both.groupBy("offsets_partition").agg(F.min("at").alias("at")).collect()
    times = {row["offsets_partition"]: instant(row["at"]) for row in first}
    return {partition: at for partition, at in times.items() if at is not None}


def timed(snapshot: DataFrame) -> DataFrame:
    return snapshot.where(~F.col("kind").isin(*_UNTIMED_KINDS))


def newest_time(*frames: DataFrame) -> Instant | None:
    """The newest `at` of all rows."""
    times = [frame.select("at") for frame in frames]
    newest = reduce(DataFrame.unionByName, times).agg(F.max("at").alias("at")).collect()[0]
    return instant(newest["at"])


def _everything(
    tables: ClusterTables,
    shared: Shared,
    *,
    commits: DataFrame,
    records: DataFrame,
    events: DataFrame,
    snapshot: DataFrame,
) -> DataFrame:
    """All rows of groups. `commits` and `records` are those of `history`, with time and source."""
    newest = Window.partitionBy("group", "topic", "partition").orderBy(F.desc("log_offset"))
    recent = commits.withColumn("place", F.row_number().over(newest)).where(F.col("place") <= MOST_COMMITS)
    everything = (
        _rows_of("commit", recent, _COMMIT)
        .unionByName(_rows_of("record", records, _RECORD), allowMissingColumns=True)
        .unionByName(_rows_of("event", events, _EVENT), allowMissingColumns=True)
        .unionByName(
            _rows_of("snapshot", chosen_rows(snapshot, shared.name), _SNAPSHOT), allowMissingColumns=True
        )
    )
    listed = sorted({group for listing, _ in shared.listings for group in listing.groups})
    if listed:
        named = tables.spark.createDataFrame(pa.table({"group": pa.array(listed, STRING)}))
        everything = everything.unionByName(named, allowMissingColumns=True)
    return everything


@contextmanager
def _judged(tables: ClusterTables, shared: Shared, everything: DataFrame) -> Iterator[DataFrame]:
    """Rows as JUDGED says. The driver judges the groups of a small cluster (`spark.tasks` says why)."""
    schema = from_arrow_schema(JUDGED, prefer_timestamp_ntz=False)
    if is_local(tables.spark.sparkContext.master) and tables.is_small(*_READ):
        by_group: dict[str, list[Row]] = {}
        for row in everything.toArrow().to_pylist():
            by_group.setdefault(row["group"], []).append(row)
        judged = [row for rows in by_group.values() for row in _judge(shared, rows)]
        yield tables.spark.createDataFrame(pa.Table.from_pylist(judged, JUDGED), schema)
        return
    handed = tables.spark.sparkContext.broadcast(shared)

    def of_group(table: pa.Table) -> pa.Table:
        spare_modules()
        return pa.Table.from_pylist(list(_judge(handed.value, table.to_pylist())), JUDGED)

    with staged(tables.lake, "judged", everything.groupBy("group").applyInArrow(of_group, schema)) as stage:
        yield stage


def _rows_of(origin: str, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The group, and these columns as a struct that is named after where they come from."""
    of_groups = frame.where(F.col("group").isNotNull())
    return of_groups.select("group", F.struct(*columns).alias(origin))


def _judge(shared: Shared, rows: Sequence[Row]) -> Iterator[Row]:
    for case in _cases(shared, rows):
        findings, undecided = diagnose(case)
        home, state = case.offsets_partition, case.state
        yield {
            "what": CASE,
            "cluster": shared.name,
            "group": case.group,
            "offsets_partition": home.partition if home is not None else None,
            "state": state.state if state is not None else None,
            "member_count": _member_count(case),
            "known_from": list(case.known_from),
            "is_listed": case.listed,
            "in_zookeeper": case.in_zookeeper,
        }
        for finding in findings:
            yield {"what": FINDING, **finding_row(finding, shared.name)}
        for question in undecided:
            yield {"what": OPEN, **open_row(question, shared.name)}


def _member_count(case: Case) -> int | None:
    if not case.in_zookeeper:
        return len(case.state.members) if case.state is not None else None
    looks = [row for row in case.zookeeper if row.registrations is not None]
    return len(looks[-1].members) if looks else None


def _cases(shared: Shared, rows: Sequence[Row]) -> list[Case]:
    """None, if a survey asked for this group and nothing shows that it exists."""
    group: str = rows[0]["group"]
    seen = Observations()
    commits, records = _origin(rows, "commit", _place_in_log), _origin(rows, "record", _place_in_log)
    if commits or records:
        first = min([*commits[:1], *records[:1]], key=_place_in_log)
        seen.known_groups[group] = f"{first['source']}@{first['log_offset']}"
    for row in commits:
        add_row(seen, history.commit_of(row))
    for observation in observed_groups(records, dict(shared.topic_names)):
        add_row(seen, observation)
    seen.events = [event_of(row) for row in _origin(rows, "event", _place_in_file)]
    seen.add(observed(_origin(rows, "snapshot", lambda row: (row["snapshot"], row["ordinal"]))))
    return build_cases(
        group,
        seen,
        shared.cluster,
        listings=[
            replace(listing, groups=(group,) if group in named else ()) for listing, named in shared.listings
        ],
        history_from=_history(shared, group, [*seen.commits, *seen.generations]),
    )


def _history(shared: Shared, group: str, rows: Sequence[Any]) -> Instant | None:
    home = Case(group, shared.cluster).offsets_partition
    if home is not None:
        return shared.history_from.get(home.partition)
    return min((row.at for row in rows if row.at is not None), default=None)


def _origin(rows: Sequence[Row], origin: str, order: Callable[[Row], Any]) -> list[Row]:
    return sorted((row[origin] for row in rows if row[origin] is not None), key=order)


def _place_in_log(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["offsets_partition"], row["log_offset"]


def _place_in_file(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["source"], row["line"], row["part"] or 0
