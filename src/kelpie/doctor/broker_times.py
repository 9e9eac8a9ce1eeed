"""The times that brokers wrote, on the clock here. `cluster.clocks` says how far the clocks are apart.

Commits, generations and removals are stamped by the group's coordinator; the newest record of a partition or
of a transaction, and the answer to "where did the log end an hour ago?", have the time of producers or of the
leader.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from kelpie.cluster.clocks import IN_STEP, Skew, commits_after_looks, newest_record, skews
from kelpie.cluster.view import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, LogEnds, Observations, OpenTransaction
from kelpie.observations.earlier import is_of_survey
from kelpie.observations.group_offsets import GroupCommits
from kelpie.observations.ordering import by_time
from kelpie.observations.positions import BY_TIMESTAMPS

_MOST_POSITIONS = 2_000
"""That are compared with what looks saw."""
Place = tuple[str, str, int]
"""Group, topic and partition."""


def on_our_clock(
    observations: Observations, cluster: ClusterView, now: Instant
) -> tuple[Observations, ClusterView]:
    """The same rows and the same picture, with the brokers' times converted where clocks differ.

    Rows of files alone have no other clock than those of brokers: nothing is converted there.
    """
    if not any(broker.alive and is_of_survey(broker.at, now) for broker in observations.brokers):
        return observations, cluster
    stamps: dict[int, Instant] = {}
    for group, at in _newest_stamps(observations).items():
        node = _coordinator(cluster, group)
        if node is not None and at > stamps.get(node, -1):
            stamps[node] = at
    found = skews(
        cluster.brokers,
        now,
        readings=[row for row in observations.clocks if is_of_survey(row.at, now)],
        newest_stamps=stamps,
        latest_records=newest_record((end for rows in cluster.ends.values() for end in rows[-1:]), now),
        committed_after=_committed_after(observations, cluster),
    )
    cluster = replace(cluster, clocks=found)
    if not any(skew.shift for skew in found.values()):
        return observations, cluster
    moved = replace(
        observations,
        commits=_moved(observations.commits, cluster),
        group_commits=_moved(observations.group_commits, cluster),
        generations=_moved(observations.generations, cluster),
        removals=_moved(observations.removals, cluster),
        pending_commits=_moved(observations.pending_commits, cluster),
    )
    ends = {name: tuple(_moved_end(row, cluster) for row in rows) for name, rows in cluster.ends.items()}
    transactions = {
        name: tuple(_moved_transaction(row, cluster) for row in rows)
        for name, rows in cluster.transactions.items()
    }
    in_order = {name: by_time(rows) for name, rows in ends.items()}
    return moved, replace(cluster, ends=in_order, transactions=transactions)


def _newest_stamps(observations: Observations) -> dict[str, Instant]:
    """By group."""
    stamps: dict[str, Instant] = {}
    rows: Iterable[GroupCommits | Commit] = chain(observations.group_commits, observations.commits)
    for row in rows:
        at = row.at
        if at is not None and at > stamps.get(row.group, -1):
            stamps[row.group] = at
    return stamps


def skew_of(cluster: ClusterView, group: str) -> Skew:
    """How far the clock of the group's coordinator is from the clock here."""
    node = _coordinator(cluster, group)
    return cluster.clocks.get(node, IN_STEP) if node is not None else IN_STEP


def _coordinator(cluster: ClusterView, group: str) -> int | None:
    home = cluster.home_of(group)
    view = cluster.view(home) if home is not None else None
    return view.leader if view is not None and view.leader >= 0 else None


def _committed_after(
    observations: Observations, cluster: ClusterView
) -> dict[int, list[tuple[Instant, Instant]]]:
    """By coordinator: stamps of commits, and looks that did not see them yet."""
    looks = _first_looks(observations)
    groups = {group for group, _, _ in looks}
    histories: defaultdict[Place, list[Commit]] = defaultdict(list)
    of_groups = (run.rows for run in observations.group_commits if run.group in groups)
    for commit in chain(observations.commits, *of_groups):
        if commit[:3] in looks:
            histories[commit[:3]].append(commit)
    pairs: defaultdict[int, list[tuple[Instant, Instant]]] = defaultdict(list)
    for place, commits in histories.items():
        node = _coordinator(cluster, place[0])
        pair = commits_after_looks(commits, looks[place]) if node is not None else None
        if node is not None and pair is not None:
            pairs[node].append(pair)
    return pairs


def _first_looks(observations: Observations) -> dict[Place, list[Committed]]:
    """What surveys saw of some thousand positions: of all there are, it would be too many."""
    looks: dict[Place, list[Committed]] = {}
    groups: set[str] = set()
    for told in observations.group_offsets:
        if told.group in groups or len(looks) < _MOST_POSITIONS:
            groups.add(told.group)
            for row in told.rows:
                looks.setdefault(row[:3], []).append(row)
    for row in islice(observations.committed, 20 * _MOST_POSITIONS):
        place = row[:3]
        if place in looks or len(looks) < _MOST_POSITIONS:
            looks.setdefault(place, []).append(row)
    return looks


def _moved(rows: Sequence[Any], cluster: ClusterView) -> list[Any]:
    shifts = {group: skew_of(cluster, group).shift for group in {row.group for row in rows}}
    return [_at(row, row.at - shifts[row.group]) if row.at is not None else row for row in rows]


def _at(row: Any, at: Instant) -> Any:
    return row._replace(at=at) if hasattr(row, "_replace") else replace(row, at=at)


def _moved_end(row: LogEnds, cluster: ClusterView) -> LogEnds:
    shift = _shift_of_leader(cluster, row.name)
    if not shift:
        return row
    if row.last_written is not None:
        row = row._replace(last_written=row.last_written - shift)
    if row.at is not None and row.source.endswith(BY_TIMESTAMPS):
        row = row._replace(at=row.at - shift)
    return row


def _moved_transaction(row: OpenTransaction, cluster: ClusterView) -> OpenTransaction:
    shift = _shift_of_leader(cluster, row.name)
    return row if row.last_written is None else row._replace(last_written=row.last_written - shift)


def _shift_of_leader(cluster: ClusterView, name: TopicPartition) -> int:
    view = cluster.view(name)
    return cluster.clocks.get(view.leader, IN_STEP).shift if view is not None else 0
