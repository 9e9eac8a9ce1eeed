"""The numbers of a group that a look adds to its history, by comparing it with the look before."""

from collections.abc import Iterator, Sequence
from math import nan

from kelpie.doctor.case import Case
from kelpie.doctor.overview import GroupOverview
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit
from kelpie.web.history import Numbers
from kelpie.web.snapshot import Snapshot


def measured(look: Snapshot, before: Snapshot | None) -> Iterator[tuple[str, Numbers]]:
    """Of every group."""
    cases, earlier = look.observed(), before.observed() if before is not None else {}
    since = before.now if before is not None else None
    for row in look.groups:
        case = cases.get(row.group)
        if case is not None:
            yield row.group, _numbers(row, case, earlier.get(row.group), since)


def _numbers(row: GroupOverview, case: Case, before: Case | None, since: Instant | None) -> Numbers:
    known = Numbers(_or_nan(row.lag), _or_nan(row.lag_ms), members=_or_nan(row.members))
    now = case.cluster.now
    if since is None or now <= since:
        return known
    is_covered = case.history_from is not None and case.history_from <= since
    return known._replace(
        records=_advance(_offsets(before), _offsets(case)) * 1000 / (now - since)
        if before is not None
        else nan,
        commits=_commits(case, since) * 60_000 / (now - since) if is_covered else nan,
        rebalances=_generations(case, since) if is_covered else nan,
    )


def _or_nan(value: float | None) -> float:
    return nan if value is None else value


def _offsets(case: Case | None) -> dict[TopicPartition, int]:
    if case is None:
        return {}
    if case.in_zookeeper:
        return {row.name: row.offset for row in (case.zookeeper[-1].offsets if case.zookeeper else ())}
    return {name: row.offset for name, row in case.committed.items() if row.offset >= 0 and not row.error}


def _advance(before: dict[TopicPartition, int], now: dict[TopicPartition, int]) -> float:
    """Records further, in partitions that both looks know. A reset to an earlier offset is no progress."""
    both = before.keys() & now.keys()
    return sum(max(0, now[name] - before[name]) for name in both) if both else nan


def _commits(case: Case, since: Instant) -> int:
    """One request commits several partitions at one time."""
    return len({at for rows in case.commits.values() for at in later(rows, since)})


def _generations(case: Case, since: Instant) -> int:
    later = [row for row in case.generations if row.at is not None and row.at > since]
    return len({row.generation for row in later if row.members or row.generation})


def later(rows: Sequence[Commit], since: Instant) -> Iterator[Instant]:
    """Times of commits after this one: the newest come last."""
    for row in reversed(rows):
        if row.at is not None and row.at <= since:
            return
        if row.at is not None and not row.removed:
            yield row.at
