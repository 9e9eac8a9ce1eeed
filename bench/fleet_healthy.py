"""Groups that are well, also where they look as if they were not."""

from bench.fleet_disks import Transaction
from bench.fleet_groups import MINUTE_MS, Group


def healthy(group: Group) -> None:
    group.runs(group.starts(group.start), group.now)


def restarted(group: Group) -> None:
    """A rolling restart of two members: four generations, and nothing is wrong."""
    group.starts(group.start)
    at = (group.start + group.now) // 2
    for member in range(2):
        group.leaves(at, member)
        group.joins(at + 8_000, member)
        at += 16_000
    group.runs(group.start + 3_000, group.now)


def transactional(group: Group) -> None:
    """Commits in transactions, one in four of which is aborted: none of these counts."""
    begin = group.starts(group.start)
    for number, at in enumerate(group.rounds(begin, group.now)):
        aborted = number % 4 == 3
        offsets = group.at(group.end(at) + (5_000 if aborted else 0))
        group.commits(at, offsets, within=Transaction(9_000 + group.number, is_aborted=aborted))


def quiet(group: Group) -> None:
    """Nothing comes into its topic, so there is nothing to read; it commits the same offset all the time."""
    group.is_idle = True
    group.runs(group.starts(group.start), group.now)


def behind(group: Group) -> None:
    """Some hundred records behind all the time, and moving: that is its way."""
    group.runs(group.starts(group.start), group.now, lambda at: group.end(at - MINUTE_MS))


KINDS = (healthy, restarted, healthy, transactional, quiet, healthy, behind)
"""In turns."""
