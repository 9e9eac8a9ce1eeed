"""Where groups stood when they could last be asked, as the store keeps it.

`seen.offsets_at` says which survey told it. While that survey is kept, it is not written a second time: so
nothing is packed for each of 10,000 groups. `seen.offsets` has it for groups of which no coordinator told it,
and for those whose survey is gone.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Collection
from itertools import chain

from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, Observations
from kelpie.observations.earlier import Unpackable, pack, unpack_by_group


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
    database.executemany(
        "UPDATE seen SET offsets = ? WHERE cluster = ? AND name = ?",
        (
            (pack([("committed", rows)]), cluster, written_name(group))
            for group, rows in by_group(survey, groups).items()
        ),
    )


def written_name(group: str) -> bytes:
    return group.encode("utf-8", "surrogatepass")


def read_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")
