"""How the store keeps what an examination saw: what is written, what is merged, what goes.

While somebody watches, there is a look every few seconds, and nearly all rows say the same as the last ones.
So rows of groups are changed together where that can be, and left alone where nothing has changed.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kelpie.model.time import Instant
from kelpie.observations import Committed, Illness, Observations
from kelpie.observations.earlier import AGES_MS, earlier_survey, is_of_survey, kept, pack
from kelpie.observations.encoding import rows_by_kind
from kelpie.observations.presence import Presence
from kelpie.store_offsets import by_group, by_last_commits, forget_offsets, keep_offsets
from kelpie.store_values import UNREADABLE, read_name, time_from, whole, written_name

Found = tuple[str | None, str]
"""A group, or None for the cluster, and the code of a finding."""
FORGET_GROUPS_MS = 90 * 24 * 3_600_000

_DEAD = "Dead"
"""What a coordinator says of a group that it does not know."""
_FORGET_GONE_MS = 24 * 3_600_000
_MOST_GROUPS = 200_000
_LARGEST_SURVEY = 16 * 1024 * 1024
_MANY = 1_000
"""Rows for which it pays to look through all rows once."""


def remember(
    database: sqlite3.Connection, cluster: str, seen: Observations, at: Instant, gone: Iterable[str]
) -> None:
    """The survey, its groups, and where they stand."""
    survey = earlier_survey(seen, at)
    data = pack(rows_by_kind(replace(survey, group_offsets=[])), survey.group_offsets)
    is_kept = len(data) <= _LARGEST_SURVEY
    if is_kept:
        database.execute("INSERT OR REPLACE INTO survey VALUES (?, ?, ?)", (cluster, at, data))
    told = {row.group for row in survey.committed if not row.error and row.offset >= 0}
    told.update(row.group for row in survey.group_offsets)
    apart = by_last_commits(seen, told)
    """Offsets that the survey does not have, or that cannot be kept with it."""
    if not is_kept:
        apart |= by_group(survey, told)
    known = {group for listing in seen.listings for group in listing.groups}
    known |= {
        row.group for row in seen.states if is_of_survey(row.at, at) and not row.error and row.state != _DEAD
    }
    known |= told | apart.keys()  # Kafka 0.9 lists no group without members; their commits are there.
    known |= _by_generations(seen)  # A group that began after its coordinator listed its groups.
    _note_groups(database, cluster, at, known=known, told=told, apart=apart)
    database.executemany(
        "DELETE FROM seen WHERE cluster = ? AND name = ? AND last_at < ?",
        ((cluster, written_name(group), at - _FORGET_GONE_MS) for group in gone),
    )
    _thin(database, cluster, at)


def _note_groups(
    database: sqlite3.Connection,
    cluster: str,
    at: Instant,
    *,
    known: Collection[str],
    told: Collection[str],
    apart: Mapping[str, list[Committed]],
) -> None:
    """`told`: groups whose offsets the survey has, unless they are kept `apart`.

    Groups of which the same survey told last, and which are told again, have the same values before and
    after: they are changed by one statement.
    """
    again = {written_name(group): group for group in told if group not in apart}
    alike: defaultdict[tuple[Any, Any], list[Any]] = defaultdict(list)
    for name, *times in database.execute(
        "SELECT name, last_at, offsets_at FROM seen WHERE cluster = ?", (cluster,)
    ):
        alike[times[0], times[1]].append(name)
    noted: set[str] = set()
    for (last_at, offsets_at), names in alike.items():
        if len(names) >= _MANY and all(name in again for name in names):
            database.execute(
                "UPDATE seen SET last_at = ?1, offsets = NULL, offsets_at = ?1 "
                "WHERE cluster = ?2 AND last_at IS ?3 AND offsets_at IS ?4",
                (at, cluster, last_at, offsets_at),
            )
            noted.update(again[name] for name in names)
    database.executemany(
        "INSERT INTO seen VALUES (?1, ?2, ?3, ?3, ?4, ?5) ON CONFLICT (cluster, name) DO UPDATE SET "
        "last_at = excluded.last_at, "
        "offsets = CASE WHEN excluded.offsets_at IS NULL THEN offsets ELSE excluded.offsets END, "
        "offsets_at = coalesce(excluded.offsets_at, offsets_at)",
        (
            (
                cluster,
                written_name(group),
                at,
                pack([("committed", apart[group])]) if group in apart else None,
                at if group in told or group in apart else None,
            )
            for group in sorted(known)
            if group not in noted
        ),
    )


def _by_generations(seen: Observations) -> set[str]:
    """Groups of which the offsets topic has a generation, and no removal after it."""
    removed = {row.group: row.at or 0 for row in seen.removals}
    return {row.group for row in seen.generations if (row.at or 0) > removed.get(row.group, -1)}


def remember_illness(database: sqlite3.Connection, cluster: str, ill: Iterable[Illness], at: Instant) -> None:
    """One row from the first examination that found it to the last one, however many there were. What has no
    known beginning counts from when it is found: it goes on if the examination before found it, too.
    """
    surveys = "SELECT max(at) FROM survey WHERE cluster = ? AND at < ? AND typeof(at) = 'integer'"
    (before,) = database.execute(surveys, (cluster, at)).fetchone()
    last: dict[tuple[bytes, str], Instant] = {}
    for name, code, seen_at in database.execute(
        "SELECT name, code, max(at) FROM illness WHERE cluster = ? AND typeof(at) = 'integer' "
        "GROUP BY name, code",
        (cluster,),
    ):
        last[name, code] = seen_at
    goes_on, begins = [], []
    for row in ill:
        key = (written_name(row.group), row.code)
        since = before if row.since == at and before is not None else row.since
        if last.get(key, since - 1) >= since:
            goes_on.append((at, cluster, *key, since))
        else:
            begins.append((cluster, *key, row.since, at))
            last[key] = at
    database.executemany("INSERT OR REPLACE INTO illness VALUES (?, ?, ?, ?, ?)", begins)
    database.executemany(
        "UPDATE illness SET at = ? WHERE cluster = ? AND name = ? AND code = ? AND at >= ?", goes_on
    )


def remember_presence(
    database: sqlite3.Connection, cluster: str, alive: Mapping[int, bool | None], at: Instant
) -> None:
    known = presences(database, cluster, [])
    database.executemany(
        "INSERT OR REPLACE INTO presence VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (cluster, node, *known.get(node, Presence()).seen(is_alive, at), at)
            for node, is_alive in alive.items()
            if is_alive is not None
        ),
    )


def presences(database: sqlite3.Connection, cluster: str, unreadable: list[str]) -> dict[int, Presence]:
    """By broker. Those that cannot be read are noted."""
    rows = database.execute(
        "SELECT node, alive_at, before, away_since, back_at FROM presence WHERE cluster = ?", (cluster,)
    )
    presences = {}
    for node, *times in rows:
        try:
            presences[whole(node)] = Presence(*(None if at is None else time_from(at) for at in times))
        except UNREADABLE as error:
            unreadable.append(f"when broker {node!r} was away ({error})")
    return presences


def remember_found(
    database: sqlite3.Connection, cluster: str, found: Mapping[Found, str], of_groups: Iterable[str] | None
) -> None:
    if of_groups is None:
        if found_before(database, cluster) == found:
            return
        database.execute("DELETE FROM found WHERE cluster = ?", (cluster,))
    else:
        names = ((cluster, written_name(group)) for group in ("", *of_groups))
        database.executemany("DELETE FROM found WHERE cluster = ? AND name = ?", names)
    database.executemany(
        "INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?)",
        ((cluster, written_name(group or ""), code, word) for (group, code), word in found.items()),
    )


def found_before(database: sqlite3.Connection, cluster: str) -> dict[Found, str]:
    """What the last examination found: the severity of each finding."""
    rows = database.execute("SELECT name, code, severity FROM found WHERE cluster = ?", (cluster,))
    return {(read_name(name) or None, code): word for name, code, word in rows if isinstance(name, bytes)}


def _thin(database: sqlite3.Connection, cluster: str, now: Instant) -> None:
    database.execute("DELETE FROM survey WHERE typeof(at) <> 'integer'")
    moments = [at for (at,) in database.execute("SELECT at FROM survey WHERE cluster = ?", (cluster,))]
    for at in set(moments) - kept(moments, now):
        keep_offsets(database, cluster, at)
        database.execute("DELETE FROM survey WHERE cluster = ? AND at = ?", (cluster, at))
    database.execute("DELETE FROM seen WHERE last_at < ?", (now - FORGET_GROUPS_MS,))
    database.execute("DELETE FROM survey WHERE at < ?", (now - FORGET_GROUPS_MS,))
    forget_offsets(database, cluster)
    for table in ("illness", "presence"):
        database.execute(f"DELETE FROM {table} WHERE at < ?", (now - AGES_MS[-1],))  # noqa: S608 - names from here
    database.execute(
        "DELETE FROM seen WHERE cluster = ?1 AND name IN (SELECT name FROM seen WHERE cluster = ?1 "
        "ORDER BY last_at DESC LIMIT -1 OFFSET ?2)",
        (cluster, _MOST_GROUPS),
    )
