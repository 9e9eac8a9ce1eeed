"""Where groups stood when they could last be asked, as the store keeps it.

`seen.offsets_at` says which survey told it. While that survey is kept, it is not written a second time. Of a
survey that goes, `stood` keeps the offsets of those groups that no survey could ask since, all in one packed
row: one broker that dies may take the coordinator of thousands. `seen.offsets` has them for a group of which
no coordinator told it; releases before also kept them there for groups whose survey is gone.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Collection
from itertools import chain

from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, Observations
from kelpie.observations.earlier import Unpackable, pack, unpack_by_group
from kelpie.observations.group_offsets import GroupOffsets
from kelpie.store_values import UNREADABLE, read_name, time_from


def by_last_commits(seen: Observations, told: Collection[str]) -> dict[str, list[Committed]]:
    """Where groups stand of which no coordinator tells it: by their last commits in the offsets topic."""
    newest: dict[tuple[str, str, int], Commit] = {}
    runs = (run.rows for run in seen.group_commits if run.group not in told)
    for commit in chain(seen.commits, *runs):
        if commit.group not in told:
            newest[commit.group, commit.topic, commit.partition] = commit
    offsets: defaultdict[str, list[Committed]] = defaultdict(list)
    for (group, topic, partition), commit in newest.items():
        if not commit.removed:
            row = Committed(group, topic, partition, commit.offset, 0, commit.leader_epoch)
            offsets[group].append(row)
    return dict(offsets)


def by_group(survey: Observations, groups: Collection[str]) -> dict[str, list[Committed]]:
    """What a survey says of these groups."""
    offsets: defaultdict[str, list[Committed]] = defaultdict(list)
    runs = (told.rows for told in survey.group_offsets if told.group in groups)
    for row in chain(survey.committed, *runs):
        if row.group in groups and not row.error and row.offset >= 0:
            offsets[row.group].append(row)
    return dict(offsets)


def keep_offsets(database: sqlite3.Connection, cluster: str, at: Instant) -> None:
    """Before a survey is deleted: where those groups stood that could not be asked since."""
    names = database.execute(
        "SELECT name FROM seen WHERE cluster = ? AND offsets_at = ? AND offsets IS NULL", (cluster, at)
    )
    groups = {read_name(name) for (name,) in names if isinstance(name, bytes)}
    row = database.execute("SELECT data FROM survey WHERE cluster = ? AND at = ?", (cluster, at)).fetchone()
    if not groups or row is None:
        return
    try:
        survey = unpack_by_group(row[0], at)
    except Unpackable:
        return  # It goes for good. `Store.recall` has said so.
    told = [row for row in survey.group_offsets if row.group in groups and min(row.offsets, default=0) >= 0]
    rest = by_group(survey, groups - {row.group for row in told})
    data = pack([("committed", list(chain.from_iterable(rest.values())))], told)
    database.execute("INSERT OR REPLACE INTO stood VALUES (?, ?, ?)", (cluster, at, data))


def forget_offsets(database: sqlite3.Connection, cluster: str) -> None:
    """Those kept together of which every group could be asked since."""
    database.execute(
        "DELETE FROM stood WHERE cluster = ?1 AND at NOT IN (SELECT offsets_at FROM seen "
        "WHERE cluster = ?1 AND offsets IS NULL AND offsets_at IS NOT NULL)",
        (cluster,),
    )


def offsets_kept_together(
    database: sqlite3.Connection, cluster: str, unreadable: list[str]
) -> dict[tuple[Instant, str], GroupOffsets]:
    """By the time of their survey, and by group."""
    stood: dict[tuple[Instant, str], GroupOffsets] = {}
    for at, data in database.execute("SELECT at, data FROM stood WHERE cluster = ?", (cluster,)):
        try:
            rows = unpack_by_group(data, time_from(at)).group_offsets
        except UNREADABLE as error:
            unreadable.append(f"where groups stood at {at!r} ({error})")
        else:
            stood.update(((at, row.group), row) for row in rows)
    return stood
