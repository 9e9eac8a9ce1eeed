"""findings, open_question, group_health, coordinator_timeline and coordinator_outage in rounds.

`diagnosis.judging` says as of when a group is judged, and `diagnosis.recent` and `diagnosis.kept_snapshots`
what the rules read of it: that is bounded, and a round carries it. So a round reads the new rows, and:

- new commits, records and lines of logs make their groups be judged again;
- a survey, a line of a log about no group, or anything else that is seen of the cluster makes all groups be
  judged again;
- rows about the cluster as a whole, and group_health, are made in every round. They are few.

Only the rows that differ are written. A survey that comes late, rows that are void and logs that are read
anew make what is carried be read from all rows again. Clusters with groups that ZooKeeper keeps are judged
from all rows: lines of their logs often name no group.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import diagnose_cluster
from kelpie.model.time import Instant
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.diagnosis.coordinators import outages, timeline
from kelpie.pipeline.diagnosis.findings import finding_row, open_row
from kelpie.pipeline.diagnosis.generations import RECORD, as_table, generation_rows, of_tail
from kelpie.pipeline.diagnosis.health import health, shown
from kelpie.pipeline.diagnosis.judging import GroupRows, Judged, Shared, judge
from kelpie.pipeline.diagnosis.recent import judged_commits
from kelpie.pipeline.group_history import has_zookeeper_groups
from kelpie.pipeline.ordering import by_group, is_of
from kelpie.pipeline.rounds import diagnosis_state as state
from kelpie.pipeline.rounds.diagnosis_state import with_cluster
from kelpie.pipeline.rounds.differences import among
from kelpie.pipeline.rounds.following import Input, Round, is_up_to_date
from kelpie.pipeline.rounds.group_changes import tails_of
from kelpie.pipeline.rounds.group_rounds import GroupRounds
from kelpie.pipeline.rounds.seen import Seen, begins_earlier, late_groups, standing
from kelpie.pipeline.sources.snapshots.chosen import chosen_rows
from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.standing import once as once_here
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.moments import instant
from kelpie.pipeline.transforms.commits import once
from kelpie.pipeline.transforms.generations import dated
from kelpie.pipeline.transforms.zookeeper.events import OF_ZOOKEEPER, configured

RECORDS, COMMITS = "group_metadata", "offset_commit"
FINDINGS, QUESTIONS, HEALTH = "findings", "open_question", "group_health"
TIMELINE, OUTAGE = "coordinator_timeline", "coordinator_outage"
GENERATIONS, GROUPS = "recent_generation", "judged_group"
_PLACE = ["group", "offsets_partition", "log_offset", "log_epoch", "written"]
_UNTIMED_KINDS = ("setting", "transaction", "epoch-end", "clock", "certificate", "size", "pending-commit")
"""Kinds of snapshot rows whose time says nothing of when the cluster was looked at."""
_OF_CLUSTER = ("quarantine", "evidence_file", "traffic_sample")
_MOST_GROUPS = 200
"""If more groups have other rows than before, all rows of a table are written."""


@dataclass(frozen=True, slots=True)
class Position:
    commits_from: Mapping[int, Instant] = field(default_factory=dict)
    """Since when commits are known, by offsets partition."""
    records_from: Mapping[int, Instant] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    """By records of groups."""
    is_dated: bool = True
    """Whether all records of groups have a time."""
    in_zookeeper: bool = False
    topic_ids: str = ""
    """Stands for the names of topics by id."""


@dataclass(slots=True)
class Material:
    """What a round judges by."""

    commits: pa.Table
    generations: pa.Table
    events: pa.Table
    snapshots: pa.Table
    lags: pa.Table
    position: Position
    changed: set[str] | None = None
    """Groups of which something is new; None: all."""


class DiagnosisRounds:
    outputs = (FINDINGS, QUESTIONS, HEALTH, TIMELINE, OUTAGE)
    inputs = (
        *(state.TIMELINE, RECORDS, COMMITS, state.EVENTS, state.SNAPSHOT, state.LAG),
        *("group_generation", "rebalance", *_OF_CLUSTER),
    )
    state = (
        *(state.RECENT_COMMIT, GENERATIONS, state.RECENT_EVENT, state.KEPT_SNAPSHOT, state.NEWEST_LAG),
        GROUPS,
    )

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        files = {name: snapshot.files for name, snapshot in inputs.items()}
        commits = state.all_commits(tables, files[state.TIMELINE])
        material = Material(
            commits.carried.rows,
            pa.table({}),
            state.all_events(tables, files[state.EVENTS]).rows,
            state.all_snapshots(tables, files[state.SNAPSHOT]).rows,
            state.all_lags(tables, files[state.LAG]),
            Position(commits.first, in_zookeeper=has_zookeeper_groups(tables)),
        )
        known = _known(tables, material)
        material.position = replace(material.position, topic_ids=_digest(known.topic_ids))
        _all_generations(tables, files, material, known)
        return self._made(tables, files, material, known, is_whole=True, with_state=with_state)

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        before = read(Position, position)
        if before.in_zookeeper or _has_zookeeper_news(tables, inputs):
            return None
        files = {name: each.now.files for name, each in inputs.items()}
        commits = state.more_commits(tables, inputs[state.TIMELINE], before.commits_from)
        events = state.more_events(tables, inputs[state.EVENTS])
        snapshots = state.more_snapshots(tables, inputs[state.SNAPSHOT])
        changed = state.changed_by(commits.carried, events, snapshots)
        if any(inputs[name].changes for name in _OF_CLUSTER if name != "evidence_file") or (
            inputs["evidence_file"].changes and files["traffic_sample"]
        ):
            changed = None
        material = Material(
            commits.carried.rows,
            pa.table({}),
            events.rows,
            snapshots.rows,
            state.more_lags(tables, inputs[state.LAG]),
            replace(before, commits_from=commits.first),
            changed,
        )
        known = _known(tables, material)
        _more_generations(tables, inputs, material, known, before)
        if _history_from(material.position) != _history_from(before):
            material.changed = None
        return self._made(tables, files, material, known, is_whole=False, with_state=True)

    def _made(
        self,
        tables: ClusterTables,
        files: Mapping[str, Sequence[Any]],
        material: Material,
        known: KnownCluster,
        *,
        is_whole: bool,
        with_state: bool,
    ) -> Round:
        view, has_ended = _view(known, material)
        judged = _judge(tables, material, known, view, has_ended=has_ended)
        of_kafka = sorted(row["group"] for row in judged.groups if not row["in_zookeeper"])
        of_cluster, undecided = diagnose_cluster(view, [Case(group, view) for group in of_kafka])
        findings = judged.findings + [finding_row(each, tables.cluster) for each in of_cluster]
        by_partition: dict[int, list[str]] = {}
        for row in judged.groups:
            by_partition.setdefault(row["offsets_partition"], []).append(row["group"])
        generations = tables.columns_of(
            "group_generation", files["group_generation"], ["group", "incarnation", "generation", "members"]
        )
        rows = {
            FINDINGS: findings,
            QUESTIONS: judged.questions + [open_row(each, tables.cluster) for each in undecided],
            HEALTH: health(
                judged.groups,
                findings=findings,
                commits=material.commits,
                shown=shown(material.snapshots),
                lag=material.lags,
                generations=generations,
                rebalances=tables.columns_of("rebalance", files["rebalance"], ["group"]),
            ),
            TIMELINE: timeline(view, tables.cluster),
            OUTAGE: outages(view, tables.cluster, by_partition),
        }
        made = Round({}, written(material.position) if with_state else None, gone={})
        anew = []
        for name, fresh in rows.items():
            table = pa.Table.from_pylist(fresh, STORED[name].schema)
            if is_whole:
                made.files[name] = tables.write(STORED[name], table)
            if is_whole or _difference(tables, name, table, made):
                anew.append(name)
        if with_state:
            carried = {
                state.RECENT_COMMIT: material.commits,
                GENERATIONS: material.generations,
                state.RECENT_EVENT: material.events,
                state.KEPT_SNAPSHOT: material.snapshots,
                state.NEWEST_LAG: material.lags,
                GROUPS: pa.Table.from_pylist(judged.groups, STORED[GROUPS].schema),
            }
            for name, each in carried.items():
                made.files[name] = tables.write(STORED[name], with_cluster(name, each, tables.cluster))
            anew += carried
        made.anew = anew
        return made


def _known(tables: ClusterTables, material: Material) -> KnownCluster:
    of_cluster = material.events.filter(pc.field("group").is_null())
    return KnownCluster(tables.lake, tables.cluster, snapshots=material.snapshots, events=of_cluster)


def _view(known: KnownCluster, material: Material) -> tuple[ClusterView, bool]:
    """The picture as of the newest that is seen of the cluster; and whether the cluster ended before that."""
    timed = material.snapshots.filter(~pc.field("kind").isin(list(_UNTIMED_KINDS)))
    of_cluster = material.events.filter(pc.field("group").is_null())
    times = [instant(pc.max(rows["at"]).as_py()) for rows in (timed, of_cluster)]
    now = max((at for at in times if at is not None), default=0)
    view = known.view(now)
    return view, view.now < now


def _judge(
    tables: ClusterTables, material: Material, known: KnownCluster, view: ClusterView, *, has_ended: bool
) -> Judged:
    """All groups. Of those of which nothing is new, what was found before is read."""
    events = material.events.filter(pc.field("group").is_valid())
    if any(of.startswith("consumer ") for of, _ in view.settings):
        events = _configured(tables, material)
    rows = GroupRows(
        judged_commits(material.commits), material.generations, events, chosen_rows(known.read, known.choice)
    )
    listings = tuple((listing, frozenset(listing.groups)) for listing in known.observations.listings)
    groups = rows.groups.union(*(named for _, named in listings))
    shared = Shared(tables.cluster, view, has_ended, listings, _history_from(material.position))
    if material.changed is None:
        return judge(tables.spark.sparkContext, shared, rows, groups)
    judged = judge(tables.spark.sparkContext, shared, rows, groups & material.changed)
    for name, found in ((GROUPS, judged.groups), (FINDINGS, judged.findings), (QUESTIONS, judged.questions)):
        stored = tables.rows_now(name)
        found += [
            {"cluster": tables.cluster, **row}
            for row in stored.to_pylist()
            if row["group"] is not None and row["group"] not in material.changed
        ]
    return judged


def _configured(tables: ClusterTables, material: Material) -> pa.Table:
    """Lines of consumers of Kafka 0.8 with the groups that their settings name."""
    events, snapshot = (
        frame_of_arrow(tables.spark, with_cluster(name, rows, tables.cluster), STORED[name].spark_schema)
        for name, rows in ((state.RECENT_EVENT, material.events), (state.KEPT_SNAPSHOT, material.snapshots))
    )
    rows = configured(events, snapshot).toArrow().cast(STORED[state.RECENT_EVENT].schema)
    return rows.filter(pc.field("group").is_valid())


def _history_from(position: Position) -> dict[int, Instant]:
    """Since when records are known, by offsets partition."""
    first = dict(position.commits_from)
    for partition, at in position.records_from.items():
        first[partition] = min(at, first.get(partition, at))
    return first


# Generations.


def _all_generations(
    tables: ClusterTables, files: Mapping[str, Sequence[Any]], material: Material, known: KnownCluster
) -> None:
    records = tables.frame_of(RECORDS, files[RECORDS])
    if not files[RECORDS]:
        material.generations = generation_rows(pa.Table.from_pylist([]), {}, tables.cluster)
        material.position = replace(material.position, records_from={}, seen=Seen(), is_dated=True)
        return
    with_times = dated(once(records), tables.frame_of(COMMITS, files[COMMITS])).withColumnRenamed(
        "began", "at"
    )
    rows = with_times.select(*RECORD).toArrow()
    material.generations = generation_rows(rows, known.topic_ids, tables.cluster)
    places = tables.columns_of(RECORDS, files[RECORDS], _PLACE)
    material.position = replace(
        material.position,
        records_from=state.since({}, rows, "at"),
        seen=Seen().with_rows(places),
        is_dated=not places["written"].null_count,
    )


def _more_generations(
    tables: ClusterTables,
    inputs: Mapping[str, Input],
    material: Material,
    known: KnownCluster,
    before: Position,
) -> None:
    """Of groups with new records, the end of their history; if some come late, all records of their group."""
    of = inputs[RECORDS].changes
    topic_ids = _digest(known.topic_ids)
    places = tables.columns_of(RECORDS, of.came, _PLACE)
    seen = before.seen.with_rows(places)
    of_all = bool(of.went or places["written"].null_count) or topic_ids != before.topic_ids
    of_all |= begins_earlier(before.seen, seen) or (not before.is_dated and bool(inputs[COMMITS].changes))
    material.position = replace(material.position, topic_ids=topic_ids)
    if of_all:
        _all_generations(tables, {name: each.now.files for name, each in inputs.items()}, material, known)
        material.changed = None
        return
    material.generations = tables.rows_now(GENERATIONS)
    if not places.num_rows:
        return
    groups = set(places["group"].to_pylist())
    first = state.since(before.records_from, standing(seen, places), "written")
    material.position = replace(material.position, records_from=first, seen=seen)
    material.changed = state.union(material.changed, groups)
    made = _by_tails(tables, inputs, material, known, groups - late_groups(places, before.seen.ends))
    fresh = [as_table(made, tables.cluster)]
    if others := groups - made.keys():
        fresh.append(_by_records(tables, inputs[RECORDS].now.files, known, seen, others))
    kept = material.generations.filter(~is_of(groups))
    material.generations = pa.concat_tables([kept, *(rows.select(kept.column_names) for rows in fresh)])


def _by_tails(
    tables: ClusterTables,
    inputs: Mapping[str, Input],
    material: Material,
    known: KnownCluster,
    groups: Collection[str],
) -> dict[str, list[Any]]:
    """By group, as far as the round of groups has left the ends of their histories."""
    if not groups or not is_up_to_date(tables, GroupRounds(), RECORDS, inputs[RECORDS].now.version):
        return {}
    carried = by_group(material.generations.filter(is_of(groups)))
    tails = tails_of(tables, groups)
    found = {
        group: of_tail(carried.get(group, ()), tails[group], known.topic_ids)
        for group in groups
        if group in tails and tails[group].records
    }
    return {group: rows for group, rows in found.items() if rows is not None}


def _by_records(
    tables: ClusterTables,
    files: Sequence[Any],
    known: KnownCluster,
    seen: Seen,
    groups: Collection[str],
) -> pa.Table:
    """Of all records of groups."""
    columns = [*(name for name in RECORD if name != "at"), "log_epoch"]
    rows = once_here(standing(seen, tables.columns_of(RECORDS, files, columns, is_of(groups))))
    dated_rows = rows.append_column("at", rows["written"]).select(RECORD)
    return generation_rows(dated_rows, known.topic_ids, tables.cluster)


def _digest(topic_ids: Mapping[bytes, str]) -> str:
    return hashlib.sha256(repr(sorted(topic_ids.items())).encode()).hexdigest()[:16] if topic_ids else ""


def _has_zookeeper_news(tables: ClusterTables, inputs: Mapping[str, Input]) -> bool:
    is_of_zookeeper = pc.field("kind") >= OF_ZOOKEEPER
    return any(
        tables.columns_of(name, inputs[name].changes.came, ["kind"], is_of_zookeeper).num_rows
        for name in (state.EVENTS, state.SNAPSHOT)
    )


# What is written.


def _difference(tables: ClusterTables, name: str, rows: pa.Table, made: Round) -> bool:
    """Adds the files of the rows that differ. Returns whether all rows are written."""
    table = STORED[name]
    stored = tables.rows_now(name)
    old, new = _by_group(stored), _by_group(rows.select(stored.column_names))
    differ = {group for group in {*old, *new} if old.get(group) != new.get(group)}
    if not differ:
        return False
    if "group" not in table.schema.names or None in differ or len(differ) > _MOST_GROUPS:
        made.files[name] = tables.write(table, rows)
        return True
    made.files[name] = tables.write(
        table, rows.filter(pc.field("group").isin(pa.array(sorted(map(str, differ)))))
    )
    assert isinstance(made.gone, dict)
    made.gone[name] = [among("group", (str(group) for group in differ))]
    return False


def _by_group(rows: pa.Table) -> dict[str | None, list[str]]:
    """Rows as texts, in order. Rows of a table without groups are together."""
    found: dict[str | None, list[str]] = {}
    for row in rows.to_pylist():
        found.setdefault(row.get("group"), []).append(repr(row))
    return {group: sorted(each) for group, each in found.items()}
