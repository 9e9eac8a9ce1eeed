"""Takes rows out that are older than their layer keeps them.

1. If the inputs of a table are about to lose rows, and the last round has left nothing for the next one, a
   round is made that does (`rounds.following.leave_state`).
2. Tables made of them are closed (`storage.floors`): before the first day that their layer keeps, and before
   the second day that their inputs keep. What happens on the first day may depend on lines of a log, or on
   clocks, of a moment before.
3. Rows go, in one commit for each table. Files that are old as a whole are not read, but for those of tables
   of which something stays (`bases`); of the others only those are rewritten that have old rows.

A run that is killed has done some of these steps. The next one does the others; no step is harmful without
the next ones.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta

from deltalake.exceptions import CommitFailedError

from kelpie.pipeline.graph import JOBS, Job
from kelpie.pipeline.retention.bases import BASES, kept_rows
from kelpie.pipeline.retention.keep import Keep
from kelpie.pipeline.rounds.following import leave_state
from kelpie.pipeline.storage.exchange import exchange
from kelpie.pipeline.storage.floors import (
    Aged,
    aged_files,
    closed_mark,
    floor_of,
    kept_mark,
    kept_since,
    rewritten,
)
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.lifetimes import ends, is_young
from kelpie.pipeline.tables.table import DAY

_A_DAY = timedelta(days=1)
_CLOSINGS = {"traffic_closing": "broker", "offset_closing": None}
"""Tables of which the newest old day stays, for the next one goes on from it: of each broker, or at all."""


def age(
    tables: ClusterTables,
    keep: Keep,
    now: datetime,
    announce: Callable[[str], None] = lambda _: None,
    *,
    jobs: Iterable[Job] = JOBS,
) -> dict[str, int]:
    """Returns how many rows have gone, by table. Derived tables must be up to date."""
    due = {
        name: since
        for name, table in TABLES.items()
        if ends(table)
        and (since := keep.since(table.layer, now)) is not None
        and _is_due(tables, name, since)
    }
    if not due:
        return {}
    for job in jobs:
        inputs = [due[name] + _A_DAY for name in job.inputs if name in due]
        if inputs and job.follower is not None:
            leave_state(tables, job.follower)
        for name in job.outputs:
            floors = [*inputs, *([due[name]] if name in due else [])]
            if floors and ends(TABLES[name]):
                _close(tables, name, max(floors))
    gone: dict[str, int] = {}
    for name in sorted(due, key=_order):
        before = tables.lake.count(TABLES[name], tables.cluster)
        try:
            _age(tables, name, due[name])
        except CommitFailedError as failure:  # The next run does it.
            announce(f"old rows of {name} stay for now: {failure}")
            continue
        if less := before - tables.lake.count(TABLES[name], tables.cluster):
            gone[name] = less
    return gone


def _order(name: str) -> tuple[int, str]:
    order = list(BASES)
    return (order.index(name) if name in order else len(order), name)


def _is_due(tables: ClusterTables, name: str, since: date) -> bool:
    delta = tables.lake.open(TABLES[name])
    done = kept_since(delta, tables.cluster)
    return (done is None or done < since) and bool(_aged(tables, name, since))


def _aged(tables: ClusterTables, name: str, since: date) -> list[Aged]:
    table, lake = TABLES[name], tables.lake
    return aged_files(lake.open(table), lake.path(table), table, tables.cluster, since)


def _close(tables: ClusterTables, name: str, before: date) -> None:
    table = TABLES[name]
    delta = tables.lake.open(table)
    floor = floor_of(delta, tables.cluster)
    if floor is None or floor < before:
        mark = closed_mark(tables.cluster, before)
        exchange(delta, tables.lake.path(table), remove=(), add=(), marks=[mark], aged=True)


def _age(tables: ClusterTables, name: str, since: date) -> None:
    table, lake = TABLES[name], tables.lake
    folder, files = lake.path(table), _aged(tables, name, since)
    stay: list[NewFile] = []
    if name in BASES:
        stay = tables.write(table, kept_rows(tables, name, [folder / file.path for file in files], since))
    else:
        if name in _CLOSINGS:
            files = _but_the_newest(tables, name, files)
        for file in files:
            if not file.is_whole:
                young, cluster = is_young(table, since), tables.cluster
                stay += rewritten(table, folder, file.path, cluster=cluster, within=file.within, where=young)
    exchange(
        lake.open(table),
        folder,
        remove=[file.path for file in files],
        add=stay,
        marks=[kept_mark(tables.cluster, since)],
        aged=True,
    )


def _but_the_newest(tables: ClusterTables, name: str, files: list[Aged]) -> list[Aged]:
    """The next day goes on from the newest one before it, of each broker."""
    column, folder = _CLOSINGS[name], tables.lake.path(TABLES[name])
    by_day: dict[str, list[Aged]] = {}
    for file in files:
        by_day.setdefault(file.within[DAY], []).append(file)
    known: set[object] = set()
    out: list[Aged] = []
    for day in sorted(by_day, reverse=True):
        of_day: set[object] = {name}
        if column is not None:
            places = [folder / file.path for file in by_day[day]]
            of_day = set(tables.columns_of(name, places, [column])[column].to_pylist())
        if of_day <= known:
            out += by_day[day]
        known |= of_day
    return out


def told(gone: Mapping[str, int]) -> str:
    """For people."""
    return f"{sum(gone.values()):,} old rows of {len(gone)} tables have gone" if gone else ""
