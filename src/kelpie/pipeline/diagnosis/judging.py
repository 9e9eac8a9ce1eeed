"""The doctor's rules on groups, in tasks of Spark: the same functions as live.

All rows of one group come together in one task and make its case. The picture of the cluster is small: the
driver makes it once, and every task gets it.

Theory: rules depend on the time of the case. The end of all that is known of a cluster moves with each row
about any group; if that were the time of all cases, each row would change what is said of every group. So a
group is judged as of the newest evidence that concerns it: its own rows, and all that is seen of the cluster
as a whole, as surveys and lines about brokers are. That time follows from the evidence, and not from when or
how often it was looked at: one batch and many rounds agree. A group of which nothing is new, in a cluster of
which nothing is new, need not be judged again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build_cases
from kelpie.doctor.diagnosis import diagnose
from kelpie.doctor.glances import Glances
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Commit, Generation, Listing, Observations
from kelpie.observations.encoding import loads
from kelpie.observations.group_offsets import GroupCommits
from kelpie.observations.offsets_topic import add_row
from kelpie.observations.positions import NO_OFFSET
from kelpie.pipeline.diagnosis.commit_runs import commit_runs, with_expiry
from kelpie.pipeline.diagnosis.findings import finding_row, open_row
from kelpie.pipeline.ordering import by_group, is_of
from kelpie.pipeline.sources.logs.intake import event_of
from kelpie.pipeline.sources.snapshots.outputs import observed
from kelpie.pipeline.spark.tasks import run_tasks
from kelpie.pipeline.spark.workers import spare_modules
from kelpie.pipeline.tables.moments import instant, moment

if TYPE_CHECKING:
    from pyspark import SparkContext

_TASKS_PER_CORE = 2
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows of groups, newest included, as `recent` leaves them."""

    commits: pa.Table
    """Of recent_commit."""
    generations: pa.Table
    """Of recent_generation."""
    events: pa.Table
    """Of log_event."""
    snapshots: pa.Table
    """Of cluster_snapshot, as `chosen_rows` leaves them."""

    def of(self, groups: Iterable[str]) -> "GroupRows":
        wanted = is_of(groups)
        return GroupRows(*(table.filter(wanted) for table in self._tables))

    @property
    def _tables(self) -> tuple[pa.Table, ...]:
        return self.commits, self.generations, self.events, self.snapshots

    @property
    def groups(self) -> set[str]:
        names = (table["group"].unique().to_pylist() for table in self._tables)
        return {name for of_table in names for name in of_table if name is not None}

    @property
    def size(self) -> int:
        return sum(int(table.nbytes) for table in self._tables)

    def by_group(self) -> Iterator[dict[str, list[Row]]]:
        """Rows by group, of each table but that of commits."""
        for table in (self.generations, self.events, self.snapshots):
            yield by_group(table)


@dataclass(frozen=True, slots=True)
class Shared:
    """What every task needs to know."""

    name: str
    cluster: ClusterView
    has_ended: bool
    """The cluster was shut down: no group is judged as of a later time."""
    listings: tuple[tuple[Listing, frozenset[str]], ...]
    history_from: Mapping[int, Instant]


@dataclass(frozen=True, slots=True)
class Judged:
    """Rows of tables."""

    groups: list[Row]
    """Of judged_group."""
    findings: list[Row]
    questions: list[Row]
    """Of open_question."""


def judge(context: "SparkContext", shared: Shared, rows: GroupRows, groups: Iterable[str]) -> Judged:
    """All rules on these groups. Some may have no rows, but be listed."""
    names = sorted(groups)
    count = max(1, min(len(names), context.defaultParallelism * _TASKS_PER_CORE))
    size = rows.size
    parts = [names[number::count] for number in range(count)]
    inputs = [(part, rows.of(part)) for part in parts] if count > 1 else [(names, rows.of(names))]
    task = _task(context, shared, size)
    judged = Judged([], [], [])
    for groups_found, findings, questions in run_tasks(context, task, inputs, size=size):
        judged.groups.extend(groups_found)
        judged.findings.extend(findings)
        judged.questions.extend(questions)
    return judged


def _task(context: "SparkContext", shared: Shared, size: int) -> Callable[[Any], tuple[list[Row], ...]]:
    from kelpie.pipeline.spark.tasks import is_done_here  # noqa: PLC0415

    if is_done_here(context, size):
        return lambda given: _judge_all(shared, *given)
    handed = context.broadcast(shared)

    def task(given: tuple[Sequence[str], GroupRows]) -> tuple[list[Row], ...]:
        spare_modules()
        return _judge_all(handed.value, *given)

    return task


def _judge_all(shared: Shared, groups: Sequence[str], rows: GroupRows) -> tuple[list[Row], ...]:
    single = is_of(with_expiry(rows.commits))
    commits, runs = by_group(rows.commits.filter(single)), commit_runs(rows.commits.filter(~single))
    generations, events, snapshots = rows.by_group()
    glances: dict[Instant, Glances] = {}
    found: list[Row] = []
    findings: list[Row] = []
    questions: list[Row] = []
    for group in groups:
        seen = Observations()
        seen.group_commits = runs.get(group, [])
        _add_records(seen, group, commits.get(group, ()), generations.get(group, ()))
        seen.events = [event_of(row) for row in sorted(events.get(group, ()), key=_place_in_file)]
        seen.add(observed(sorted(snapshots.get(group, ()), key=_place_in_survey)))
        now = _time_of(shared, seen)
        cluster = shared.cluster.at(now)
        if now not in glances:
            glances = {now: Glances(cluster)}
        for case in _cases(shared, cluster, group, seen):
            of_group, undecided = diagnose(case, glances[now])
            found.append(_group_row(shared.name, case))
            findings += [finding_row(finding, shared.name) for finding in of_group]
            questions += [open_row(question, shared.name) for question in undecided]
    return found, findings, questions


def _time_of(shared: Shared, seen: Observations) -> Instant:
    """As of when a group is judged."""
    if shared.has_ended:
        return shared.cluster.now
    own = (row.at for rows in (_of_topic(seen), seen.removals, seen.events) for row in rows)
    return max((at for at in own if at is not None and at > shared.cluster.now), default=shared.cluster.now)


def _of_topic(seen: Observations) -> Iterator[Commit | GroupCommits | Generation]:
    return chain(seen.commits, seen.group_commits, seen.generations)


def _add_records(seen: Observations, group: str, commits: Sequence[Row], generations: Sequence[Row]) -> None:
    """Commits and generations, in the order of the log. They name their place in the topic: which copy of a
    record was read first, or at all, must not matter.
    """
    expires: dict[tuple[str, int, int], Any] = {}
    made = []
    for row in sorted(commits, key=_place_in_log, reverse=True):
        position = row["topic"], row["partition"], row["offsets_partition"]
        made.append(_commit_of(row, instant(expires.get(position))))
        expires[position] = row["previous_expires"]
    for commit in reversed(made):
        add_row(seen, commit)
    for row in sorted(generations, key=lambda each: each["place"]):
        add_row(seen, loads(row["kind"], row["body"]))
    if commits or generations or seen.group_commits:
        seen.known_groups[group] = OFFSETS_TOPIC


def _commit_of(row: Mapping[str, Any], expires: Instant | None) -> Commit:
    offset = row["offset"]
    return Commit(
        row["group"],
        row["topic"],
        row["partition"],
        NO_OFFSET if offset is None else offset,
        instant(row["committed"]),
        -1 if row["leader_epoch"] is None else row["leader_epoch"],
        "",
        expires,
        bool(row["is_transactional"]),
        f"{OFFSETS_TOPIC}-{row['offsets_partition']}@{row['log_offset']}",
    )


def _cases(shared: Shared, cluster: ClusterView, group: str, seen: Observations) -> list[Case]:
    """None, if a survey asked for this group and nothing shows that it exists."""
    return build_cases(
        group,
        seen,
        cluster,
        listings=[
            replace(listing, groups=(group,) if group in named else ()) for listing, named in shared.listings
        ],
        history_from=_history(shared, cluster, group, _of_topic(seen)),
    )


def _history(shared: Shared, cluster: ClusterView, group: str, rows: Iterable[Any]) -> Instant | None:
    home = cluster.home_of(group)
    if home is not None:
        return shared.history_from.get(home.partition)
    return min((row.at for row in rows if row.at is not None), default=None)


def _group_row(name: str, case: Case) -> Row:
    home, state = case.offsets_partition, case.state
    return {
        "cluster": name,
        "group": case.group,
        "at": moment(case.cluster.now),
        "offsets_partition": home.partition if home is not None else None,
        "state": state.state if state is not None else None,
        "member_count": _member_count(case),
        "known_from": list(case.known_from),
        "is_listed": case.listed,
        "in_zookeeper": case.in_zookeeper,
    }


def _member_count(case: Case) -> int | None:
    if not case.in_zookeeper:
        return len(case.state.members) if case.state is not None else None
    looks = [row for row in case.zookeeper if row.registrations is not None]
    return len(looks[-1].members) if looks else None


def _place_in_log(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["offsets_partition"], row["log_offset"]


def _place_in_file(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["source"], row["line"], row["part"] or 0


def _place_in_survey(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["snapshot"], row["ordinal"]
