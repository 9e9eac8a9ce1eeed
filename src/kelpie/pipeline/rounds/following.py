"""A round of a table that follows its inputs step by step.

Theory. A job that makes a table of all rows of its inputs costs more with every day of history. A follower
makes the same rows in rounds, and each round costs what is new:

- It knows the versions of its inputs that the last round has read. The logs of these tables tell which files
  came and went since (`storage.changes`); compaction changes no row and is no news.
- It keeps rows of its inputs that matter for rows still to come (the last commit of each position, commits
  whose transaction has not ended) in tables of the layer `state`. These and the new rows go through the same
  function that makes the table as a whole, and give the new rows of the output.
- Outputs that may still change are open. A round replaces the open rows that it makes again.
- A key (a partition of the offsets topic, a group) of which rows have gone, or of which a new row belongs
  before rows that were read, is made again from all its rows, and the difference is written.

So any cutting of the input into rounds, in any order, leaves the rows that one round over everything leaves.

Outputs, state and versions are committed through the journal: a page lists them, and the next round completes
a page that a killed one has left. The page has the number of the inputs (as `derived` for other tables) and
the position, which only the follower understands.

The first round makes the table as a whole, and leaves no state: most lakes are filled once. The second makes
it once more, with state. So does a round that cannot know what has changed: after an update of Kelpie, or if
the table's log (kept for a day) or a replaced file (kept for an hour) is gone, or if most of an input was
replaced.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from kelpie.pipeline.code_version import code_version
from kelpie.pipeline.storage.changes import Changes, changes
from kelpie.pipeline.storage.frames import SMALL_FILES_BYTES, ClusterTables
from kelpie.pipeline.storage.journal import Journal, Page
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import STORED
from kelpie.places import Place

_MOST_GONE = 0.5
"""If a larger part of all inputs was replaced, a round over everything costs less."""


class Input(NamedTuple):
    """An input of a round."""

    now: Snapshot
    changes: Changes
    """Since the last round."""


@dataclass(slots=True)
class Round:
    """What a round leaves."""

    files: dict[str, Sequence[NewFile]]
    """By table, outputs and state."""
    position: Any = None
    """Plain data that the next round needs."""
    anew: Iterable[str] = ()
    """Tables whose rows were all made again."""
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Conditions in SQL for the rows that are replaced, by table."""


class Follower(Protocol):
    """How a job follows. `inputs` are tables by name."""

    @property
    def outputs(self) -> tuple[str, ...]: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def state(self) -> tuple[str, ...]:
        """Tables of the layer `state`."""
        ...

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        """Makes the outputs of all rows; and the state, so that the next round can be a step."""
        ...

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        """Makes what the changes of the inputs change. None: only the whole can be made."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """A round that is due."""

    journal: Journal
    number: int
    last: Mapping[str, Any] | None
    """What the page of the last round says; None: there is none."""
    inputs: Mapping[str, Snapshot]
    made_of: str


def due(tables: ClusterTables, follower: Follower) -> Work | None:
    """The round to do; None: nothing has changed. Completes what a killed round has left."""
    lake, cluster = tables.lake, tables.cluster
    application = _application(follower, cluster)
    journal = Journal(lake, application)
    page = journal.newest()
    if page is not None and not _is_lost(tables, follower, page):
        journal.finish()
        _mark(tables, follower, page)
        last: Mapping[str, Any] | None = page.progress
    else:
        last = None
    now = {name: lake.snapshot(STORED[name], cluster) for name in follower.inputs}
    made_of = _number(now)
    if last is not None and last["made_of"] == made_of:
        return None
    return Work(journal, 0 if page is None else page.number + 1, last, now, made_of)


def do(tables: ClusterTables, follower: Follower, work: Work) -> None:
    """Does the round."""
    done = _step(tables, follower, work)
    has_state = done is not None or work.last is not None
    if done is None:
        done = follower.whole(tables, work.inputs, with_state=has_state)
    cluster = tables.cluster
    page = work.journal.record(
        work.number,
        {name: done.files.get(name, ()) for name in _tables(follower)},
        {
            "made_of": work.made_of,
            "code": code_version().hex(),
            "versions": {name: snapshot.version for name, snapshot in work.inputs.items()},
            "position": done.position,
            "has_state": has_state,
        },
        {name: [(cluster, where) for where in conditions] for name, conditions in done.gone.items()},
        dict.fromkeys(done.anew, cluster),
    )
    work.journal.finish()
    _mark(tables, follower, page)


def leave_state(tables: ClusterTables, follower: Follower) -> None:
    """If the last round has left nothing for the next one, makes the tables once more, and leaves it.

    Afterwards, the inputs may lose old rows: the next round does not need them.
    """
    journal = Journal(tables.lake, _application(follower, tables.cluster))
    page = journal.newest()
    if page is None or page.progress["has_state"]:
        return
    journal.finish()
    now = {name: tables.lake.snapshot(STORED[name], tables.cluster) for name in follower.inputs}
    do(tables, follower, Work(journal, page.number + 1, page.progress, now, _number(now)))


def is_up_to_date(tables: ClusterTables, follower: Follower, name: str, version: int) -> bool:
    """Whether what a follower carries is of this version of one of its inputs."""
    page = Journal(tables.lake, _application(follower, tables.cluster)).newest()
    if page is None or not page.progress["has_state"] or page.progress["code"] != code_version().hex():
        return False
    return bool(page.progress["versions"][name] == version)


def _step(tables: ClusterTables, follower: Follower, work: Work) -> Round | None:
    last = work.last
    if last is None or not last["has_state"] or last["code"] != code_version().hex():
        return None
    inputs = {}
    for name, now in work.inputs.items():
        table, since = STORED[name], last["versions"][name]
        changed = changes(tables.lake, table, tables.cluster, since=since, until=now.version)
        if changed is None:
            return None
        inputs[name] = Input(now, changed)
    replaced = sum(_size(each.changes.went) for each in inputs.values())
    # Of all inputs together: a new row of a small one may replace the only file that it has.
    if replaced > _MOST_GONE * sum(_size(each.now.files) for each in inputs.values()):
        return None
    if replaced <= SMALL_FILES_BYTES:
        tables = tables.for_rows(sum(each.changes.rows for each in inputs.values()))
    return follower.step(tables, inputs, last["position"])


def _application(follower: Follower, cluster: str) -> str:
    return f"rounds of {follower.outputs[0]} of {cluster}"


def _tables(follower: Follower) -> tuple[str, ...]:
    return (*follower.outputs, *follower.state)


def _mark(tables: ClusterTables, follower: Follower, page: Page) -> None:
    """Each table knows the number of the last round, also if that round has not changed it."""
    application = _application(follower, tables.cluster)
    for name in _tables(follower):
        tables.lake.add(STORED[name], (), application=application, version=page.number)


def _is_lost(tables: ClusterTables, follower: Follower, page: Page) -> bool:
    """Whether a table lacks a round before the last one: somebody has deleted it."""
    application = _application(follower, tables.cluster)
    known = [tables.lake.version_of(STORED[name], application) for name in _tables(follower)]
    return min(known) < page.number - 1


def _number(inputs: Mapping[str, Snapshot]) -> str:
    """Stands for the rows of the inputs, and for the code that reads them."""
    digest = hashlib.sha256(code_version())
    for name, snapshot in inputs.items():
        digest.update(b"\0\0" + name.encode())
        for path in snapshot.files:
            digest.update(b"\0" + path.name.encode())
    return digest.hexdigest()[:16]


def _size(files: Iterable[Place]) -> int:
    return sum(file.stat().st_size for file in files)
