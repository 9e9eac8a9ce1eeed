"""The numbers of a group that a look adds to its history, by comparing it with the look before."""

from collections.abc import Iterator, Mapping
from math import nan
from types import MappingProxyType

from kelpie.doctor.case import Case
from kelpie.doctor.group_positions import commits_since
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.web.history import Numbers
from kelpie.web.snapshot import Snapshot

_new = tuple.__new__  # Numbers(...) would be a call of a Python function, for 10,000 groups.


def measured(
    look: Snapshot, before: Snapshot | None, at_rest: Mapping[str, int] = MappingProxyType({})
) -> Iterator[tuple[str, Numbers]]:
    """Of every group. `at_rest`: some that are known to have the committed offsets of the look before, and
    how many commits are newer than all that it knew.
    """
    cases = look.observed()
    earlier: Mapping[str, Case] = before.observed() if before is not None else {}
    since = before.now if before is not None and before.now < look.now else None
    span = look.now - since if since is not None else 0
    for row in look.groups:
        case = cases.get(row.group)
        if case is None:
            continue
        records = commits = rebalances = nan
        if since is not None:
            last = earlier.get(row.group)
            new_commits = at_rest.get(row.group)
            if last is not None:
                records = 0.0 if new_commits is not None else _advance(last, case) * 1000 / span
            if case.history_from is not None and case.history_from <= since:
                commits = 0.0 if new_commits == 0 else _commits(case, since) * 60_000 / span
                rebalances = _generations(case, since) if case.generations else 0
        lag, lag_ms, members = row.lag, row.lag_ms, row.members
        values = (
            nan if lag is None else lag,
            nan if lag_ms is None else lag_ms,
            records,
            commits,
            nan if members is None else members,
            rebalances,
        )
        yield row.group, _new(Numbers, values)


def _offsets(case: Case) -> dict[TopicPartition, int]:
    if case.in_zookeeper:
        return {row.name: row.offset for row in (case.zookeeper[-1].offsets if case.zookeeper else ())}
    return {name: row.offset for name, row in case.committed.items() if row.offset >= 0 and not row.error}


def _advance(before: Case, case: Case) -> float:
    """Records further, in partitions that both looks know. A reset to an earlier offset is no progress."""
    old, new = _offsets(before), _offsets(case)
    both = old.keys() & new.keys()
    return sum(max(0, new[name] - old[name]) for name in both) if both else nan


def _commits(case: Case, since: Instant) -> int:
    """One request commits several partitions at one time."""
    later = commits_since(case.commits, since)
    return len({at for at, offsets in later if offsets}) if later else 0


def _generations(case: Case, since: Instant) -> int:
    later = [row for row in case.generations if row.at is not None and row.at > since]
    return len({row.generation for row in later if row.members or row.generation})
