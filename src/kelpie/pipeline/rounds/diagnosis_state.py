"""What a round of the diagnosis carries, and how new rows change it. All of it is in memory: it is bounded.

Each function returns the rows that are carried from now on, and which groups they change.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.evidence.snapshot_choice import lasting
from kelpie.model.time import Instant
from kelpie.pipeline.diagnosis.kept_snapshots import ended, headers_in, kept, newest_committed
from kelpie.pipeline.diagnosis.recent import recent_commits, recent_events
from kelpie.pipeline.ordering import ends, keys, numbers
from kelpie.pipeline.rounds.differences import difference_in_memory
from kelpie.pipeline.rounds.following import Input
from kelpie.pipeline.sources.snapshots.chosen import among, is_of_offsets_topic, is_surveyed
from kelpie.pipeline.sources.snapshots.outputs import SURVEY
from kelpie.pipeline.storage.frames import ClusterTables, stored_names
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.moments import instant
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.places import Place

TIMELINE, EVENTS, SNAPSHOT, LAG = "commit_timeline", "log_event", "cluster_snapshot", "lag"
RECENT_COMMIT, RECENT_EVENT, KEPT_SNAPSHOT, NEWEST_LAG = (
    *("recent_commit", "recent_event", "kept_snapshot"),
    "newest_lag",
)
_POSITION = ["group", "topic", "partition"]
_AT_ONCE_ROWS = 2_000_000
"""So many rows are in memory before those are left out that do not count."""


class Carried(NamedTuple):
    rows: pa.Table
    changed: frozenset[str] | None = frozenset()
    """Groups; None: all may have changed."""


class Commits(NamedTuple):
    carried: Carried
    first: dict[int, Instant]
    """Since when commits are known, by offsets partition."""


# Commits.


def all_commits(tables: ClusterTables, files: Sequence[Place]) -> Commits:
    """Of all rows of commit_timeline."""
    names = stored_names(RECENT_COMMIT)
    none, batches = tables.columns_of(TIMELINE, [], names), tables.batches_of(TIMELINE, files, names)
    commits = _with_batches(none, {}, batches)
    return commits._replace(carried=commits.carried._replace(changed=None))


def more_commits(tables: ClusterTables, of: Input, before: Mapping[int, Instant]) -> Commits:
    """`before`: since when commits were known."""
    names = stored_names(RECENT_COMMIT)
    batches: Iterable[pa.Table] = tables.batches_of(TIMELINE, of.changes.came, names)
    if of.changes.went:
        came = tables.columns_of(TIMELINE, of.changes.came, names)
        differ = difference_in_memory(tables.columns_of(TIMELINE, of.changes.went, names), came)
        if differ.went.num_rows:
            # The first commit of a partition may be among those that are gone.
            commits = all_commits(tables, of.now.files)
            changed = {*differ.came["group"].to_pylist(), *differ.went["group"].to_pylist()}
            return Commits(Carried(commits.carried.rows, frozenset(changed)), commits.first)
        batches = [differ.came]
    return _with_batches(tables.rows_now(RECENT_COMMIT), before, batches)


def _with_batches(carried: pa.Table, before: Mapping[int, Instant], batches: Iterable[pa.Table]) -> Commits:
    parts, waiting = [carried], carried.num_rows
    first, changed = dict(before), set[str]()
    for rows in batches:
        first = since(first, rows, "committed")
        changed.update(rows["group"].unique().to_pylist())
        parts.append(recent_commits(rows))
        waiting += parts[-1].num_rows
        if waiting > _AT_ONCE_ROWS:
            parts = [recent_commits(pa.concat_tables(parts))]
            waiting = 0
    return Commits(Carried(recent_commits(pa.concat_tables(parts)), frozenset(changed)), first)


def since(before: Mapping[int, Instant], rows: pa.Table, column: str) -> dict[int, Instant]:
    """The first time of each offsets partition."""
    first = dict(before)
    for row in rows.group_by("offsets_partition").aggregate([(column, "min")]).to_pylist():
        at = instant(row[f"{column}_min"])
        if at is not None:
            partition = row["offsets_partition"]
            first[partition] = min(at, first.get(partition, at))
    return first


# Lines of logs.


def all_events(tables: ClusterTables, files: Sequence[Place]) -> Carried:
    rows = [recent_events(tables.columns_of(EVENTS, [file], stored_names(RECENT_EVENT))) for file in files]
    empty = tables.columns_of(EVENTS, [], stored_names(RECENT_EVENT))
    return Carried(recent_events(pa.concat_tables([empty, *rows])), None)


def more_events(tables: ClusterTables, of: Input) -> Carried:
    if of.changes.went:  # Lines of a log that was renamed, or read anew.
        return all_events(tables, of.now.files)
    came = tables.columns_of(EVENTS, of.changes.came, stored_names(RECENT_EVENT))
    carried = tables.rows_now(RECENT_EVENT)
    if not came.num_rows:
        return Carried(carried)
    rows = recent_events(pa.concat_tables([carried, came]))
    return Carried(rows, None if came["group"].null_count else frozenset(came["group"].to_pylist()))


# Surveys, and all else that is seen of the cluster.


def all_snapshots(tables: ClusterTables, files: Sequence[Place]) -> Carried:
    names = stored_names(KEPT_SNAPSHOT)
    heads = tables.columns_of(SNAPSHOT, files, names, pc.field("kind") == SURVEY)
    whole = sorted(lasting(headers_in(heads)))
    matters = (pc.field("kind") == SURVEY) | (pc.field("kind") == "setting") | is_of_offsets_topic()
    rows = [tables.columns_of(SNAPSHOT, files, names, ~is_surveyed() | among(whole) | matters)]
    others = is_surveyed() & ~among(whole) & (pc.field("kind") == "committed") & pc.field("group").is_valid()
    # Of surveys that are not kept as a whole, the last committed offsets of each group.
    place = ["group", "at", "snapshot", "kind"]
    newest = tables.columns_of(SNAPSHOT, [], place)
    for file in files:
        of_file = tables.columns_of(SNAPSHOT, [file], place, others)
        found = pa.concat_tables([newest, of_file.group_by(place).aggregate([]).select(place)])
        newest = found.filter(pa.array(newest_committed(found))) if found.num_rows else newest
    if newest.num_rows:
        groups = newest["group"].unique()
        wanted = others & among(newest["snapshot"].unique().to_pylist()) & pc.field("group").isin(groups)
        rows.append(tables.columns_of(SNAPSHOT, files, names, wanted))
    return Carried(kept(pa.concat_tables(rows), tables.cluster), None)


def more_snapshots(tables: ClusterTables, of: Input) -> Carried:
    carried = tables.rows_now(KEPT_SNAPSHOT)
    if not of.changes:
        return Carried(carried)
    came = tables.columns_of(SNAPSHOT, of.changes.came, stored_names(KEPT_SNAPSHOT))
    is_in_order = min(ended(came), default=0) > max(ended(carried), default=-1) or not ended(came)
    if of.changes.went or not is_in_order:
        return all_snapshots(tables, of.now.files)
    return Carried(kept(pa.concat_tables([carried, came]), tables.cluster), None)


# Lag.


def all_lags(tables: ClusterTables, files: Sequence[Place]) -> pa.Table:
    newest = tables.columns_of(LAG, [], stored_names(NEWEST_LAG))
    for file in files:
        newest = _newest(pa.concat_tables([newest, tables.columns_of(LAG, [file], stored_names(NEWEST_LAG))]))
    return newest


def more_lags(tables: ClusterTables, of: Input) -> pa.Table:
    carried = tables.rows_now(NEWEST_LAG)
    if not of.changes:
        return carried
    came = tables.columns_of(LAG, of.changes.came, stored_names(NEWEST_LAG))
    went = _places(tables.columns_of(LAG, of.changes.went, stored_names(NEWEST_LAG)))
    if went:
        is_gone = [place in went for place in _places(carried)]
        gone = carried.filter(pa.array(is_gone, pa.bool_()))
        carried = carried.filter(pa.array([not each for each in is_gone], pa.bool_()))
        newest = _newest(pa.concat_tables([carried, came]))
        times = {place[:3]: place[3] for place in _places(newest)}
        if any(place[:3] not in times or times[place[:3]] < place[3] for place in _places(gone)):
            return all_lags(tables, of.now.files)  # The row before is the newest now.
        return newest
    return _newest(pa.concat_tables([carried, came]))


def _places(rows: pa.Table) -> dict[tuple[Any, ...], None]:
    return dict.fromkeys(zip(*(rows[name].to_pylist() for name in [*_POSITION, "at"]), strict=True))


def _newest(rows: pa.Table) -> pa.Table:
    """The last row of each position."""
    if not rows.num_rows:
        return rows
    key = keys(rows, _POSITION)
    order = np.lexsort((numbers(rows["at"]), key))
    return rows.take(pa.array(order[ends(key[order])]))


def with_cluster(state: str, rows: pa.Table, cluster: str) -> pa.Table:
    """As rows of a table, to be written."""
    table = STORED[state]
    if CLUSTER not in rows.column_names:
        rows = rows.append_column(CLUSTER, pa.array([cluster] * rows.num_rows, pa.string()))
    return rows.select(table.schema.names).cast(table.schema)


def changed_by(*carried: Carried) -> set[str] | None:
    """Groups; None: all."""
    groups: set[str] = set()
    for each in carried:
        if each.changed is None:
            return None
        groups |= each.changed
    return groups


def union(first: set[str] | None, more: Iterable[str]) -> set[str] | None:
    return None if first is None else first | set(more)
