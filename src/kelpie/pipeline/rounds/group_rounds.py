"""The history of groups in rounds: group_generation, membership_interval, rebalance, and those of ZooKeeper.

A round carries the end of each group's history (`group_tails`), and makes it again with what is new. It reads
no history, but where something comes late: then it reads all rows of the groups that this concerns, in bronze
and in the tables. The driver does all of it, without Spark: new records of groups are few.

Names of topics by id are copied. A new name makes all groups again. Leader epochs are of a whole partition of
the offsets topic: where each began is known from the rounds before.

The tables are made as a whole if a record of any group may have changed by that: a leader epoch that began
earlier than was known, rows that are void, records without a time (Kafka before 0.10), which are dated by
commits of others. So are clusters with groups that ZooKeeper keeps, whose lines of logs often name no group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.group_history import GroupHistory, group_history, has_zookeeper_groups
from kelpie.pipeline.rounds.differences import difference_in_memory
from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.rounds.group_changes import (
    EVENT,
    EVENTS,
    GENERATION,
    MEMBERSHIP,
    REBALANCE,
    RECORD,
    RECORDS,
    TAILS,
    TOPIC_IDS,
    GroupChanges,
    News,
    all_tails,
    is_told,
    with_assignor,
)
from kelpie.pipeline.rounds.seen import Seen, begins_earlier, seen_in
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.transforms.generations import TOPIC_ID
from kelpie.pipeline.transforms.zookeeper.events import GROUP_ID, OF_ZOOKEEPER

COMMITS, SNAPSHOT = "offset_commit", "cluster_snapshot"
_MOST_GROUPS = 2_000
"""If more groups have new records or lines, the tables are made as a whole."""


@dataclass(frozen=True, slots=True)
class Position:
    seen: Seen = field(default_factory=Seen)
    """By records of groups."""
    is_dated: bool = True
    """Whether all records of groups have a time."""
    in_zookeeper: bool = False
    """Whether ZooKeeper keeps groups of the cluster."""

    @property
    def follows(self) -> bool:
        """Whether the next round may be a step."""
        return self.is_dated and not self.in_zookeeper


class GroupRounds:
    outputs = (GENERATION, MEMBERSHIP, REBALANCE, "ownership_interval", "rebalance_attempt")
    inputs = (RECORDS, COMMITS, SNAPSHOT, EVENTS)
    state = (TOPIC_IDS, *TAILS)

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
        if position.follows:
            made |= all_tails(tables, files, position.seen, made[TOPIC_IDS])
        return Round(made, written(position), anew=(*self.outputs, *self.state))

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        before = read(Position, position)
        of_all, news = _news(tables, inputs, before)
        if not of_all and not news.groups:
            return Round({}, position)
        if of_all or not before.follows or len(news.groups) > _MOST_GROUPS:
            return None
        changes = GroupChanges(tables, {name: each.now.files for name, each in inputs.items()}, news)
        if changes.is_too_large:
            return None
        return Round(changes.files, written(Position(news.seen)), gone=changes.gone)


def _news(tables: ClusterTables, inputs: Mapping[str, Input], before: Position) -> tuple[bool, News]:
    """Whether groups may have changed of which there is nothing new; and what is new of the others."""
    changes = {name: each.changes for name, each in inputs.items()}
    of_all = bool(changes[RECORDS].went) or (not before.is_dated and bool(changes[COMMITS]))

    def new(name: str, columns: Sequence[str], where: pc.Expression) -> pa.Table:
        nonlocal of_all
        came = with_assignor(tables.columns_of(name, changes[name].came, columns, where))
        if not changes[name].went:
            return came
        # A log that was renamed has its old lines under its new name: nothing is new in that.
        went = with_assignor(tables.columns_of(name, changes[name].went, columns, where))
        both = difference_in_memory(went, came)
        of_all |= bool(both.went.num_rows)
        return both.came

    records = tables.columns_of(RECORDS, changes[RECORDS].came, RECORD)
    seen = before.seen.with_rows(records)
    of_all |= bool(records["written"].null_count) or begins_earlier(before.seen, seen)
    events = new(EVENTS, [*EVENT, "details"], is_told())
    kinds = pc.field("kind")
    of_all |= bool(new(EVENTS, ["kind", "at"], kinds >= OF_ZOOKEEPER).num_rows)
    shared = (kinds == TOPIC_ID) | (kinds >= OF_ZOOKEEPER)
    if before.in_zookeeper:
        shared |= (kinds == "setting") & pc.match_substring(pc.field("body"), f'"{GROUP_ID}"')
    of_all |= bool(new(SNAPSHOT, ["kind", "body"], shared).num_rows)
    return of_all, News(records, events, before.seen, seen)


def _topic_ids(tables: ClusterTables, files: Sequence[Any]) -> DataFrame:
    names = STORED[TOPIC_IDS].schema.names
    return tables.frame_of(SNAPSHOT, files).where(F.col("kind") == TOPIC_ID).select(*names).distinct()
