"""The history of groups in rounds: group_generation, membership_interval, rebalance, and those of ZooKeeper.

All rows of a group follow from the records and log lines of this group. So a round makes again the groups
of which there is something new, and writes only the rows that differ. What it reads:

- of records, those of these groups;
- of lines of logs, those that matter here. They are few, so a round copies the new ones into a table of its
  own (`copied_group_event`), and reads them there;
- names of topics by id, copied as well. A new name makes all groups again.

Leader epochs are of a whole partition of the offsets topic: where each began is known from the rounds before.

The tables are made as a whole if a record of any group may have changed by that: a leader epoch that began
earlier than was known, rows that are void, records without a time (Kafka before 0.10), which are dated by
commits of others. So are clusters with groups that ZooKeeper keeps, whose lines of logs often name no group.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.group_history import (
    GroupHistory,
    few_generations,
    group_history,
    has_zookeeper_groups,
)
from kelpie.pipeline.ordering import is_of
from kelpie.pipeline.rounds.differences import (
    MOST_CONDITIONS,
    among,
    conditions,
    difference,
    difference_in_memory,
    difference_of_few,
)
from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.rounds.seen import Seen, begins_earlier, epoch_rows, seen_in
from kelpie.pipeline.spark.session import is_for_few_rows
from kelpie.pipeline.storage.frames import ClusterTables, empty, stored_names
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.pipeline.transforms.commits import once
from kelpie.pipeline.transforms.departures import DEPARTURE_KINDS
from kelpie.pipeline.transforms.generations import TOPIC_ID, generations, memberships
from kelpie.pipeline.transforms.rebalances import ASSIGNOR, REBALANCE_KINDS, rebalances
from kelpie.pipeline.transforms.zookeeper.events import GROUP_ID, OF_ZOOKEEPER

RECORDS, COMMITS, SNAPSHOT, EVENTS = "group_metadata", "offset_commit", "cluster_snapshot", "log_event"
GENERATION, MEMBERSHIP, REBALANCE = "group_generation", "membership_interval", "rebalance"
TOPIC_IDS, COPIED_EVENTS = "copied_topic_id", "copied_group_event"
_KINDS = (*DEPARTURE_KINDS, *REBALANCE_KINDS)
_EVENT = [name for name in STORED[COPIED_EVENTS].schema.names if name not in (CLUSTER, ASSIGNOR)]
_FEW_GROUPS, _MOST_GROUPS = 100, 2_000
"""The driver makes so many groups itself; if more are to be made again than the latter, all are."""


@dataclass(frozen=True, slots=True)
class Position:
    seen: Seen = field(default_factory=Seen)
    """By records of groups."""
    is_dated: bool = True
    """Whether all records of groups have a time."""
    in_zookeeper: bool = False
    """Whether ZooKeeper keeps groups of the cluster."""


class GroupRounds:
    outputs = (GENERATION, MEMBERSHIP, REBALANCE, "ownership_interval", "rebalance_attempt")
    inputs = (RECORDS, COMMITS, SNAPSHOT, EVENTS)
    state = (TOPIC_IDS, COPIED_EVENTS)

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        files = {name: snapshot.files for name, snapshot in inputs.items()}
        in_zookeeper = has_zookeeper_groups(tables)
        history = GroupHistory(tables, files, in_zookeeper=in_zookeeper)
        made = dict(group_history(history))
        if not with_state:
            return Round(made, anew=self.outputs)
        records = tables.frame_of(RECORDS, files[RECORDS])
        undated = records.where(F.col("written").isNull()).limit(1).count() if files[RECORDS] else 0
        position = Position(
            seen_in(Seen(), records if files[RECORDS] else None),
            is_dated=not undated,
            in_zookeeper=in_zookeeper,
        )
        made[TOPIC_IDS] = tables.write(STORED[TOPIC_IDS], _topic_ids(tables, files[SNAPSHOT]))
        made[COPIED_EVENTS] = tables.write(STORED[COPIED_EVENTS], _events(tables, files[EVENTS]))
        return Round(made, written(position), anew=(*self.outputs, *self.state))

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        before = read(Position, position)
        news = _News(tables, inputs, before)
        if not news.of_all and not news.groups:
            return Round({}, position)
        follows = before.is_dated and not before.in_zookeeper
        if news.of_all or not follows or len(news.groups) > _MOST_GROUPS:
            return None
        # New commits may be many, and this step reads none of them.
        tables = tables.for_rows(news.count)
        records = tables.rows_of_groups(RECORDS, inputs[RECORDS].now.files, news.groups)
        files: dict[str, Any] = {COPIED_EVENTS: tables.write(STORED[COPIED_EVENTS], news.events)}
        folder = tables.lake.path(STORED[COPIED_EVENTS])
        new = [folder / file.path for file in files[COPIED_EVENTS]]
        copied = [*tables.files_now(COPIED_EVENTS), *new]
        events = tables.settled(_as_events(tables.rows_of_groups(COPIED_EVENTS, copied, news.groups)))
        topic_ids = tables.frame_of(TOPIC_IDS, tables.files_now(TOPIC_IDS))
        known = epoch_rows(tables, news.seen)
        if is_for_few_rows(tables.spark) and len(news.groups) <= _FEW_GROUPS:
            made = few_generations(tables, once(records, known), (), topic_ids)
        else:
            made = generations(records, empty(tables.spark, STORED[COMMITS].spark_schema), topic_ids, known)
        made = tables.settled(made)
        changed = {
            GENERATION: made,
            MEMBERSHIP: memberships(made, events),
            REBALANCE: rebalances(made, events).withColumn("gave_up", F.lit(None).cast("array<string>")),
        }
        gone = {}
        for name, fresh in changed.items():
            files[name], gone[name] = _written(tables, name, fresh, news.groups)
        made.unpersist()
        events.unpersist()
        return Round(
            files,
            written(Position(news.seen)),
            gone={name: each for name, each in gone.items() if each},
        )


class _News:
    """What is new in the inputs. The driver reads a few columns of the new files, without Spark."""

    def __init__(self, tables: ClusterTables, inputs: Mapping[str, Input], before: Position) -> None:
        self._tables, self._inputs = tables, inputs
        self.of_all = not before.is_dated and bool(inputs[COMMITS].changes)
        """Whether groups may have changed of which there is nothing new."""
        places = self._new(RECORDS, ["group", "offsets_partition", "log_offset", "log_epoch", "written"])
        self.seen = before.seen.with_rows(places)
        self.of_all |= bool(places["written"].null_count) or begins_earlier(before.seen, self.seen)
        told = (pc.field("kind").isin(list(_KINDS))) & ~pc.field("group").is_null()
        self.events = self._new(EVENTS, [*_EVENT, "details"], told)
        kinds = pc.field("kind")
        self.of_all |= bool(self._new(EVENTS, ["kind", "at"], kinds >= OF_ZOOKEEPER).num_rows)
        shared = (kinds == TOPIC_ID) | (kinds >= OF_ZOOKEEPER)
        if before.in_zookeeper:
            shared |= (kinds == "setting") & pc.match_substring(pc.field("body"), f'"{GROUP_ID}"')
        self.of_all |= bool(self._new(SNAPSHOT, ["kind", "body"], shared).num_rows)
        self.count = places.num_rows + self.events.num_rows
        """How many records and lines are new."""
        names = {*places["group"].to_pylist(), *self.events["group"].to_pylist()}
        self.groups = sorted(names)

    def _new(self, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        changes = self._inputs[name].changes
        came = _plain(self._tables.columns_of(name, changes.came, columns, where))
        if not changes.went:
            return came
        # A log that was renamed has its old lines under its new name: nothing is new in that.
        both = difference_in_memory(_plain(self._tables.columns_of(name, changes.went, columns, where)), came)
        self.of_all |= bool(both.went.num_rows)
        return both.came


def _written(
    tables: ClusterTables, name: str, fresh: DataFrame, groups: Collection[str]
) -> tuple[list[Any], list[str]]:
    """The files to add, and the conditions for rows that they replace."""
    table, files = STORED[name], tables.files_now(name)
    if is_for_few_rows(tables.spark):
        made = fresh.select(*(F.col(each.name).cast(each.dataType) for each in table.spark_schema))
        rows = made.toArrow().cast(table.schema)
        old = tables.columns_of(name, files, stored_names(name), is_of(groups))
        differ = difference_of_few(tables.declared(name, old), rows)
    else:
        differ = difference(table, tables.rows_of_groups(name, files, groups), fresh)
    if differ.went.num_rows > MOST_CONDITIONS:
        return tables.write(table, fresh), [among("group", groups)]
    return tables.write(table, differ.came), conditions(table, differ.went)


def _plain(rows: pa.Table) -> pa.Table:
    """With the assignor instead of all details."""
    if "details" not in rows.column_names:
        return rows
    assignor = pc.map_lookup(rows["details"].combine_chunks(), ASSIGNOR, "first")
    return rows.drop_columns("details").append_column(ASSIGNOR, assignor.cast(pa.string()))


def _topic_ids(tables: ClusterTables, files: Sequence[Any]) -> DataFrame:
    names = STORED[TOPIC_IDS].schema.names
    return tables.frame_of(SNAPSHOT, files).where(F.col("kind") == TOPIC_ID).select(*names).distinct()


def _events(tables: ClusterTables, files: Sequence[Any]) -> DataFrame:
    told = F.col("kind").isin(*_KINDS) & F.col("group").isNotNull()
    rows = tables.frame_of(EVENTS, files).where(told)
    return rows.select(CLUSTER, *_EVENT, F.col("details")[ASSIGNOR].alias(ASSIGNOR))


def _as_events(copied: DataFrame) -> DataFrame:
    """As rows of log_event, with the columns that are read here."""
    details = F.when(F.col(ASSIGNOR).isNotNull(), F.create_map(F.lit(ASSIGNOR), F.col(ASSIGNOR)))
    return copied.withColumn("details", details)
