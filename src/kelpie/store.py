"""What earlier surveys saw, kept in one small file, so that the next one can see what has changed.

Kafka forgets: no broker lists a group whose coordinator is dead. The store keeps, for each cluster, the names
of all groups that were seen, where each stood when it could last be asked, a few earlier surveys (states,
committed offsets, ends of logs), and when groups were found not to consume. `observations.earlier` says what
is kept of a survey, and encodes it.

The store is a convenience, never a condition: whatever is wrong with the file, the doctor goes on without it,
and says so. The file is SQLite, so that several doctors may use it at once. Every use is one short
transaction. A file that cannot be read is set aside under another name and begun anew; one that is locked, or
a folder that cannot be written, is left alone. `words` says what was wrong.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, Illness, Observations
from kelpie.observations.earlier import (
    AGES_MS,
    EARLIER_SURVEY,
    Unpackable,
    earlier_survey,
    is_of_survey,
    kept,
    pack,
    seen_in_survey,
    unpack,
)
from kelpie.observations.encoding import rows_by_kind

T = TypeVar("T")
Found = tuple[str | None, str]
"""A group, or None for the cluster, and the code of a finding."""

_FILE = "surveys.sqlite3"
_FORMAT = 2
_PATIENCE_S = 2.0
_DEAD = "Dead"
"""What a coordinator says of a group that it does not know."""
_FORGET_GROUPS_MS = 90 * 24 * 3_600_000
_FORGET_GONE_MS = 24 * 3_600_000
_MOST_GROUPS = 200_000
_LARGEST_SURVEY = 16 * 1024 * 1024

_TABLES = """
CREATE TABLE IF NOT EXISTS survey (
    cluster TEXT NOT NULL, at INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (cluster, at)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (
    cluster TEXT NOT NULL, name BLOB NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    offsets BLOB, offsets_at INTEGER, PRIMARY KEY (cluster, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS illness (
    cluster TEXT NOT NULL, name BLOB NOT NULL, code TEXT NOT NULL, since INTEGER NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY (cluster, name, code, since)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS found (
    cluster TEXT NOT NULL, name BLOB NOT NULL, code TEXT NOT NULL, severity TEXT NOT NULL,
    PRIMARY KEY (cluster, name, code)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS address (
    address TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
"""


def default_folder() -> Path:
    """$KELPIE_STATE, else $XDG_STATE_HOME/kelpie, else ~/.local/state/kelpie."""
    if chosen := os.environ.get("KELPIE_STATE"):
        return Path(chosen).expanduser().absolute()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The specification has relative paths ignored.
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "kelpie"


class Store:
    """`cluster` is its id, or, where a release has none, addresses of its brokers (`name_of`)."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or default_folder()) / _FILE
        self.words: list[str] = []
        """What went wrong with the store itself, for a person."""

    def name_of(self, addresses: Iterable[str], *, nameless: bool = False) -> str:
        """Under which name a cluster is kept that was seen at one of these addresses; they, if none was.

        `nameless`: it has answered, and has no id, so it is none of those that have one. (No id has a colon.)
        """
        given = list(addresses)
        names: list[str] = []
        if self.path.exists():
            names = self._within(lambda database: _named(database, given), names)
        return next((name for name in names if not nameless or ":" in name), ",".join(given))

    def recall(self, cluster: str, now: Instant) -> Observations:
        """What earlier surveys of this cluster saw: known groups, and rows of a few of them."""
        if not self.path.exists():
            return Observations()
        return self._within(lambda database: _recall(database, cluster, now), Observations())

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
    ) -> None:
        """Keep what was seen now. Rows that were recalled are not taken for new.

        `gone`: groups that their own coordinator does not know any more. After a day they are forgotten.
        `ill`: groups that were found not to consume.
        `found`: the severity of each finding of this examination, which was one `of_groups`, or of all.
        `addresses`: where the cluster was found, for the day on which nobody there answers.
        """

        def use(database: sqlite3.Connection) -> None:
            rows = [(address, cluster, at) for address in addresses]
            database.executemany("INSERT OR REPLACE INTO address VALUES (?, ?, ?)", rows)
            _remember(database, cluster, seen, at, gone)
            _remember_illness(database, cluster, ill, at)
            if found is not None:
                _remember_found(database, cluster, found, of_groups)

        self._within(use, None)

    def found(self, cluster: str) -> dict[Found, str]:
        """The severity of each finding of the last examination, by group (None: the cluster) and code."""
        if not self.path.exists():
            return {}
        return self._within(lambda database: _found(database, cluster), {})

    def clusters(self) -> list[str]:
        """The names under which clusters are kept."""
        if not self.path.exists():
            return []
        query = "SELECT DISTINCT cluster FROM address ORDER BY cluster"
        return self._within(lambda database: [name for (name,) in database.execute(query)], [])

    def _within(self, use: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        for attempt in (1, 2):
            try:
                with self._open() as database:
                    return use(database)
            except sqlite3.OperationalError as error:
                self.words.append(f"{self.path} could not be used: {error}. Earlier surveys are left out.")
                return otherwise
            except (sqlite3.DatabaseError, Unpackable) as error:
                if attempt == 2 or not self._set_aside(error):
                    return otherwise
            except OSError as error:
                self.words.append(
                    f"{error.filename or self.path} could not be used: {error.strerror}. Earlier surveys are "
                    "left out; --store DIR chooses another place."
                )
                return otherwise
        return otherwise

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            # Other users must not read the names of groups.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(self.path, timeout=_PATIENCE_S, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version not in (0, _FORMAT):
                raise sqlite3.DatabaseError(f"it has format {version}, and this release writes {_FORMAT}")
            for statement in _TABLES.split(";"):
                database.execute(statement)
            if version == 0:
                database.execute(f"PRAGMA user_version = {_FORMAT}")
            yield database
            database.execute("COMMIT")

    def _set_aside(self, error: Exception) -> bool:
        aside = self.path.with_name(f"{_FILE}.unreadable")
        try:
            self.path.replace(aside)
        except OSError as failure:
            self.words.append(
                f"{self.path} is unreadable ({error}), and cannot be moved: {failure.strerror}."
            )
            return False
        self.words.append(
            f"{self.path} was unreadable ({error}). It is now {aside.name}; earlier surveys are forgotten."
        )
        return True


def _recall(database: sqlite3.Connection, cluster: str, now: Instant) -> Observations:
    recalled = Observations()
    surveys = database.execute(
        "SELECT at, data FROM survey WHERE cluster = ? AND at < ? ORDER BY at", (cluster, now)
    )
    with_offsets: set[tuple[str, Instant]] = set()
    for at, data in surveys:
        survey = unpack(data, at)
        with_offsets.update((row.group, at) for row in survey.committed)
        recalled.add(survey)
    rows = database.execute(
        "SELECT name, last_at, offsets, offsets_at FROM seen WHERE cluster = ?", (cluster,)
    )
    for name, last_at, offsets, offsets_at in rows:
        group = name.decode("utf-8", "surrogatepass")
        recalled.known_groups[group] = seen_in_survey(last_at)
        if offsets is not None and (group, offsets_at) not in with_offsets:
            recalled.add(unpack(offsets, offsets_at))
    ill = database.execute("SELECT name, code, since, at FROM illness WHERE cluster = ?", (cluster,))
    recalled.illnesses += [
        Illness(name.decode("utf-8", "surrogatepass"), code, since, at, EARLIER_SURVEY)
        for name, code, since, at in ill
    ]
    return recalled


def _named(database: sqlite3.Connection, addresses: list[str]) -> list[str]:
    """Clusters that were seen at any of these addresses, the last one first."""
    at: dict[str, Instant] = {}
    for address in addresses:
        for name, when in database.execute("SELECT cluster, at FROM address WHERE address = ?", (address,)):
            at[name] = max(when, at.get(name, when))
    return sorted(at, key=lambda name: -at[name])


def _remember(
    database: sqlite3.Connection, cluster: str, seen: Observations, at: Instant, gone: Iterable[str]
) -> None:
    offsets = _offsets(seen, at)
    known = {group for listing in seen.listings for group in listing.groups}
    known |= {
        row.group for row in seen.states if is_of_survey(row.at, at) and not row.error and row.state != _DEAD
    }
    known |= offsets.keys()  # Kafka 0.9 lists no group without members; their commits are there.
    database.executemany(
        "INSERT INTO seen VALUES (?1, ?2, ?3, ?3, ?4, ?5) ON CONFLICT (cluster, name) DO UPDATE SET "
        "last_at = excluded.last_at, offsets = coalesce(excluded.offsets, offsets), "
        "offsets_at = coalesce(excluded.offsets_at, offsets_at)",
        (
            (
                cluster,
                _written_name(group),
                at,
                pack([("committed", offsets[group])]) if group in offsets else None,
                at if group in offsets else None,
            )
            for group in known
        ),
    )
    data = pack(rows_by_kind(earlier_survey(seen, at)))
    if len(data) <= _LARGEST_SURVEY:
        database.execute("INSERT OR REPLACE INTO survey VALUES (?, ?, ?)", (cluster, at, data))
    database.executemany(
        "DELETE FROM seen WHERE cluster = ? AND name = ? AND last_at < ?",
        ((cluster, _written_name(group), at - _FORGET_GONE_MS) for group in gone),
    )
    _thin(database, cluster, at)


def _remember_illness(
    database: sqlite3.Connection, cluster: str, ill: Iterable[Illness], at: Instant
) -> None:
    """One row from the first examination that found it to the last one, however many there were."""
    for row in ill:
        key = (cluster, _written_name(row.group), row.code)
        goes_on = database.execute(
            "UPDATE illness SET at = ? WHERE cluster = ? AND name = ? AND code = ? AND at >= ?",
            (at, *key, row.since),
        )
        if not goes_on.rowcount:
            database.execute("INSERT OR REPLACE INTO illness VALUES (?, ?, ?, ?, ?)", (*key, row.since, at))


def _remember_found(
    database: sqlite3.Connection, cluster: str, found: Mapping[Found, str], of_groups: Iterable[str] | None
) -> None:
    if of_groups is None:
        database.execute("DELETE FROM found WHERE cluster = ?", (cluster,))
    else:
        names = ((cluster, _written_name(group)) for group in ("", *of_groups))
        database.executemany("DELETE FROM found WHERE cluster = ? AND name = ?", names)
    database.executemany(
        "INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?)",
        ((cluster, _written_name(group or ""), code, word) for (group, code), word in found.items()),
    )


def _found(database: sqlite3.Connection, cluster: str) -> dict[Found, str]:
    rows = database.execute("SELECT name, code, severity FROM found WHERE cluster = ?", (cluster,))
    return {(name.decode("utf-8", "surrogatepass") or None, code): word for name, code, word in rows}


def _offsets(seen: Observations, at: Instant) -> dict[str, list[Committed]]:
    """Where groups stand: as coordinators say now, or else by their last commits in the offsets topic."""
    offsets: defaultdict[str, list[Committed]] = defaultdict(list)
    for row in seen.committed:
        if is_of_survey(row.at, at) and not row.error and row.offset >= 0:
            offsets[row.group].append(row)
    newest: dict[tuple[str, str, int], Commit] = {}
    for commit in seen.commits:
        if commit.group not in offsets:
            newest[commit.group, commit.topic, commit.partition] = commit
    for (group, topic, partition), commit in newest.items():
        if not commit.removed:
            row = Committed(group, topic, partition, commit.offset, 0, commit.leader_epoch)
            offsets[group].append(row)
    return offsets


def _thin(database: sqlite3.Connection, cluster: str, now: Instant) -> None:
    moments = [at for (at,) in database.execute("SELECT at FROM survey WHERE cluster = ?", (cluster,))]
    staying = kept(moments, now)
    database.executemany(
        "DELETE FROM survey WHERE cluster = ? AND at = ?",
        ((cluster, at) for at in moments if at not in staying),
    )
    database.execute("DELETE FROM seen WHERE last_at < ?", (now - _FORGET_GROUPS_MS,))
    database.execute("DELETE FROM survey WHERE at < ?", (now - _FORGET_GROUPS_MS,))
    database.execute("DELETE FROM illness WHERE at < ?", (now - AGES_MS[-1],))
    database.execute("DELETE FROM address WHERE at < ?", (now - _FORGET_GROUPS_MS,))
    database.execute(
        "DELETE FROM seen WHERE cluster = ?1 AND name IN (SELECT name FROM seen WHERE cluster = ?1 "
        "ORDER BY last_at DESC LIMIT -1 OFFSET ?2)",
        (cluster, _MOST_GROUPS),
    )


def _written_name(group: str) -> bytes:
    return group.encode("utf-8", "surrogatepass")
