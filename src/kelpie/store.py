"""What earlier surveys saw, in one small file per cluster, so that the next one can see what has changed.

Kafka forgets: no broker lists a group whose coordinator is dead. The store keeps, for each cluster, the names
of all groups that were seen, where each stood when it could last be asked, a few earlier surveys (states,
committed offsets, ends of logs), when each broker was last away, and when groups were found not to consume.
`observations.earlier` says what is kept of a survey, and encodes it.

The store is a convenience, never a condition: whatever is wrong with a file, the doctor goes on without it,
and says so (`words`). A row that cannot be read is left out, and all others count. `store_files` says what
becomes of a file that cannot be read.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TypeVar

from kelpie import folders
from kelpie.model.time import Instant
from kelpie.model.words import counted
from kelpie.observations import Illness, Observations
from kelpie.observations.earlier import EARLIER_SURVEY, seen_in_survey, unpack_by_group
from kelpie.store_files import StoreFiles
from kelpie.store_offsets import offsets_kept_together
from kelpie.store_remembering import (
    FORGET_GROUPS_MS,
    Found,
    found_before,
    presences,
    remember,
    remember_found,
    remember_illness,
    remember_presence,
)
from kelpie.store_values import UNREADABLE, read_name, time_from

T = TypeVar("T")

_APART = "~"
"""Before the number of a cluster that says it has the id of another. No id has it."""

_TABLES = """
CREATE TABLE IF NOT EXISTS survey (
    cluster TEXT NOT NULL, at INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (cluster, at)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (
    cluster TEXT NOT NULL, name BLOB NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    offsets BLOB, offsets_at INTEGER, PRIMARY KEY (cluster, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stood (
    cluster TEXT NOT NULL, at INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (cluster, at)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS illness (
    cluster TEXT NOT NULL, name BLOB NOT NULL, code TEXT NOT NULL, since INTEGER NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY (cluster, name, code, since)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS presence (
    cluster TEXT NOT NULL, node INTEGER NOT NULL, alive_at INTEGER, before INTEGER, away_since INTEGER,
    back_at INTEGER, at INTEGER NOT NULL, PRIMARY KEY (cluster, node)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS found (
    cluster TEXT NOT NULL, name BLOB NOT NULL, code TEXT NOT NULL, severity TEXT NOT NULL,
    PRIMARY KEY (cluster, name, code)
) WITHOUT ROWID;
"""
_INDEX_TABLES = """
CREATE TABLE IF NOT EXISTS address (
    address TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS remembered (
    cluster TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL
) WITHOUT ROWID;
"""


def default_folder() -> Path:
    """$KELPIE_STATE, else $XDG_STATE_HOME/kelpie, else ~/.local/state/kelpie."""
    return folders.state()


def known_as(cluster_id: str) -> str:
    """An id that cannot be taken for the name of a cluster that is kept apart."""
    return cluster_id.replace(_APART, "_")


class Store:
    """`cluster` is its id, or, where a release has none, addresses of its brokers (`name_of`).

    Several clusters may say that they have one id: `identify` tells them apart by their addresses.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self.words: list[str] = []
        """What went wrong with the store itself, for a person."""
        self._files = StoreFiles(self.folder, self.words)

    def name_of(self, addresses: Iterable[str], *, nameless: bool = False) -> str:
        """Under which name a cluster is kept that was seen at one of these addresses; they, if none was.

        `nameless`: it has answered, and has no id, so it is none of those that have one. (No id has a colon.)
        """
        given = list(addresses)
        names = self._look_up(lambda database: _named(database, given)) or []
        return next((name for name in names if not nameless or ":" in name), ",".join(given))

    def identify(self, cluster_id: str, addresses: Iterable[str]) -> str | None:
        """The name of the cluster with this id that was seen at one of these addresses.

        The id itself, if there is no such cluster at all. None: there is one, at other addresses. Kafka
        before 0.10.1 has no id ("").
        """
        given = list(addresses)
        if not cluster_id:
            return self.name_of(given, nameless=True)
        seen_there = self._look_up(lambda database: _named(database, given)) or []
        known = self.names_of(cluster_id)
        return next((name for name in seen_there if name in known), None if known else cluster_id)

    def names_of(self, cluster_id: str) -> list[str]:
        """The names of all clusters that say they have this id: itself, then those that are kept apart."""
        names = self._look_up(lambda database: _with_id(database, cluster_id)) or []
        return sorted(names, key=lambda name: (len(name), name))

    def another_name(self, cluster_id: str) -> str:
        """A name for one more cluster that says it has this id."""
        known = self.names_of(cluster_id)
        return next(name for number in count(2) if (name := f"{cluster_id}{_APART}{number}") not in known)

    def addresses_of(self, cluster: str) -> list[str]:
        """Where a cluster was seen."""
        query = "SELECT address FROM address WHERE cluster = ? ORDER BY address"
        return self._look_up(lambda database: [name for (name,) in database.execute(query, (cluster,))]) or []

    def recall(self, cluster: str, now: Instant) -> Observations:
        """What earlier surveys of this cluster saw: known groups, and rows of a few of them."""
        return self.recall_by_group(cluster, now).by_partition()

    def recall_by_group(self, cluster: str, now: Instant) -> Observations:
        """The same, with committed offsets by group (`group_offsets`): that is much faster."""
        recalled = self._of_cluster(cluster, lambda database: _recall(database, cluster, now))
        if recalled is None:
            return Observations()
        rows, unreadable = recalled
        if unreadable:
            self.words.append(
                f"{counted(len(unreadable), 'row')} of {self._files.of(cluster)} cannot be read and "
                f"{'is' if len(unreadable) == 1 else 'are'} left out; the first: {unreadable[0]}."
            )
        return rows

    def remember(
        self,
        cluster: str,
        seen: Observations,
        at: Instant,
        gone: Iterable[str] = (),
        addresses: Iterable[str] = (),
        *,
        ill: Iterable[Illness] = (),
        found: Mapping[Found, str] | None = None,
        of_groups: Iterable[str] | None = None,
        alive: Mapping[int, bool | None] | None = None,
    ) -> None:
        """Keep what was seen now. Rows that were recalled are not taken for new.

        `gone`: groups that their own coordinator does not know any more. After a day they are forgotten.
        `ill`: groups that were found not to consume.
        `found`: the severity of each finding of this examination, which was one `of_groups`, or of all.
        `alive`: which brokers were reached, and which were away; None: nobody can say.
        `addresses`: where the cluster was found, for the day on which nobody there answers.
        """

        def use(database: sqlite3.Connection) -> None:
            remember(database, cluster, seen, at, gone)
            remember_illness(database, cluster, ill, at)
            remember_presence(database, cluster, alive or {}, at)
            if found is not None:
                remember_found(database, cluster, found, of_groups)

        self._files.within(cluster, _TABLES, use)
        rows = [(address, cluster, at) for address in addresses]
        forgotten = self._files.within(
            None, _INDEX_TABLES, lambda database: _remember_places(database, cluster, rows, at)
        )
        for name in forgotten or ():
            self._files.remove(name)

    def found(self, cluster: str) -> dict[Found, str]:
        """The severity of each finding of the last examination, by group (None: the cluster) and code."""
        return self._of_cluster(cluster, lambda database: found_before(database, cluster)) or {}

    def clusters(self) -> list[str]:
        """The names under which clusters are kept."""
        query = "SELECT DISTINCT cluster FROM address ORDER BY cluster"
        return self._look_up(lambda database: [name for (name,) in database.execute(query)]) or []

    def _look_up(self, use: Callable[[sqlite3.Connection], T]) -> T | None:
        return self._files.within(None, _INDEX_TABLES, use) if self._files.has(None) else None

    def _of_cluster(self, cluster: str, use: Callable[[sqlite3.Connection], T]) -> T | None:
        return self._files.within(cluster, _TABLES, use) if self._files.has(cluster) else None


def _recall(database: sqlite3.Connection, cluster: str, now: Instant) -> tuple[Observations, list[str]]:
    """What can be read, and for each row that cannot: why."""
    recalled = Observations()
    unreadable: list[str] = []
    surveys = database.execute(
        "SELECT at, data FROM survey WHERE cluster = ? AND at < ? ORDER BY at", (cluster, now)
    )
    with_offsets: dict[Instant, set[str]] = {}
    for at, data in surveys:
        try:
            survey = unpack_by_group(data, time_from(at))
        except UNREADABLE as error:
            unreadable.append(f"a survey made at {at!r} ({error})")
            continue
        with_offsets[at] = {row.group for row in survey.committed}
        with_offsets[at].update(row.group for row in survey.group_offsets)
        recalled.add(survey)
    rows = database.execute(
        "SELECT name, last_at, offsets, offsets_at FROM seen WHERE cluster = ?", (cluster,)
    )
    words: dict[Instant, str] = {}
    stood = offsets_kept_together(database, cluster, unreadable)
    for name, last_at, offsets, offsets_at in rows:
        try:
            group = read_name(name)
            if last_at not in words:
                words[last_at] = seen_in_survey(time_from(last_at))
            recalled.known_groups[group] = words[last_at]
            if offsets is not None and group not in with_offsets.get(offsets_at, ()):
                told = unpack_by_group(offsets, time_from(offsets_at))
                recalled.group_offsets += told.group_offsets
                recalled.committed += told.committed
            elif offsets is None and (offsets_at, group) in stood:
                recalled.group_offsets.append(stood[offsets_at, group])
        except UNREADABLE as error:
            unreadable.append(f"group {name!r} ({error})")
    for name, code, since, at in database.execute(
        "SELECT name, code, since, at FROM illness WHERE cluster = ?", (cluster,)
    ):
        try:
            row = Illness(read_name(name), str(code), time_from(since), time_from(at), EARLIER_SURVEY)
        except UNREADABLE as error:
            unreadable.append(f"when group {name!r} did not consume ({error})")
        else:
            recalled.illnesses.append(row)
    for node, presence in presences(database, cluster, unreadable).items():
        recalled.brokers += presence.rows(node)
    return recalled, unreadable


def _named(database: sqlite3.Connection, addresses: list[str]) -> list[str]:
    """Clusters that were seen at any of these addresses, the last one first."""
    at: dict[str, Instant] = {}
    for address in addresses:
        rows = database.execute(
            "SELECT cluster, at FROM address WHERE address = ? AND typeof(at) = 'integer'", (address,)
        )
        for name, when in rows:
            at[name] = max(when, at.get(name, when))
    return sorted(at, key=lambda name: -at[name])


def _with_id(database: sqlite3.Connection, cluster_id: str) -> list[str]:
    names = "SELECT cluster FROM address UNION SELECT cluster FROM remembered"
    return [name for (name,) in database.execute(names) if name.partition(_APART)[0] == cluster_id]


def _owner(database: sqlite3.Connection, address: str) -> str | None:
    row = database.execute("SELECT cluster FROM address WHERE address = ?", (address,)).fetchone()
    return None if row is None else str(row[0])


def _remember_places(
    database: sqlite3.Connection, cluster: str, rows: Sequence[tuple[str, str, Instant]], now: Instant
) -> list[str]:
    """Returns clusters that were not seen for so long that nothing of them is kept."""
    database.execute("INSERT OR REPLACE INTO remembered VALUES (?, ?)", (cluster, now))
    # Who only says that it is a known cluster does not take over its addresses.
    others = set(_with_id(database, cluster.partition(_APART)[0])) - {cluster}
    owners = {address: _owner(database, address) for address, _, _ in rows}
    database.executemany(
        "INSERT OR REPLACE INTO address VALUES (?, ?, ?)",
        (row for row in rows if owners[row[0]] not in others),
    )
    limit = (now - FORGET_GROUPS_MS,)
    forgotten = [name for (name,) in database.execute("SELECT cluster FROM remembered WHERE at < ?", limit)]
    database.execute("DELETE FROM remembered WHERE at < ?", limit)
    database.execute("DELETE FROM address WHERE at < ?", limit)
    return forgotten
