"""Snapshots of one cluster that `kelpie collect` took, as observations."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kelpie.evidence.snapshot_choice import Choice, LeaderChanges, choose, failed_row, other_cluster
from kelpie.evidence.snapshot_files import Header, Torn, read_snapshot
from kelpie.evidence.unreadable import unreadable
from kelpie.observations import OFFSETS_TOPIC, Observations, Unasked
from kelpie.observations.earlier import EARLIER_KINDS, earlier_rows
from kelpie.observations.encoding import KNOWN, add, gathered


class _Unusable(Exception):
    """A snapshot turned out to be damaged. The others are read again without it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name, self.reason = name, reason


class Snapshot(NamedTuple):
    path: Path
    header: Header


Wanted = Callable[[str], bool]
"""Decides by the beginning of a line whether the row is read."""


def read_snapshots(snapshots: Mapping[str, Snapshot], unasked: list[Unasked]) -> Observations:
    """What counts of all snapshots. A row in `unasked` names each that cannot be used."""
    usable = dict(snapshots)
    while True:
        choice = choose({name: snapshot.header for name, snapshot in usable.items()})
        try:
            observations = _read_chosen(choice, usable)
        except _Unusable as error:
            unasked.append(_unusable(error.name, error.reason))
            del usable[error.name]
            continue
        unasked += [_unusable(name, other_cluster(usable[name].header, choice)) for name in choice.foreign]
        return observations


def _read_chosen(choice: Choice, snapshots: Mapping[str, Snapshot]) -> Observations:
    observations = Observations()
    leaders = LeaderChanges()
    for name in choice.in_order:
        if name == choice.newest:
            survey = gathered(_rows(name, snapshots, lambda _: True))
            observations.partitions += leaders.rows()
        else:
            survey = Observations()
            is_used = name in choice.earlier
            for kind, row in _rows(name, snapshots, _of_earlier if is_used else _of_unused):
                if kind in ("partition", "setting"):
                    add(survey, kind, row)
                elif is_used:
                    for kept_row in earlier_rows(kind, row):
                        add(survey, *kept_row)
            leaders.add(survey.partitions)
            survey.partitions = []
        observations.add(survey)
    listed = {group for listing in observations.listings for group in listing.groups}
    _add_last_offsets(observations, listed | observations.known_groups.keys(), choice, snapshots)
    for name in choice.failed:
        for kind, row in _rows(name, snapshots, lambda _: True):
            if kind == "unasked":
                observations.unasked.append(failed_row(row))
            elif kind == KNOWN:
                add(observations, kind, row)
    return observations


def _add_last_offsets(
    observations: Observations, groups: Collection[str], choice: Choice, snapshots: Mapping[str, Snapshot]
) -> None:
    """For groups without offsets so far: those of the last snapshot that has them."""
    missing = set(groups) - {row.group for row in observations.committed}
    for name in reversed(choice.in_order):
        if not missing:
            return
        if name in choice.used:
            continue
        rows = [
            row
            for kind, seen in _rows(name, snapshots, _of_kinds("committed"))
            if seen.group in missing
            for _, row in earlier_rows(kind, seen)
        ]
        observations.committed += rows
        missing -= {row.group for row in rows}


def _of_kinds(*kinds: str) -> Wanted:
    beginnings = tuple(f'["{kind}",' for kind in kinds)
    return lambda line: line.startswith(beginnings)


_of_earlier = _of_kinds(*EARLIER_KINDS, "partition", "setting")


def _of_unused(line: str) -> bool:
    return line.startswith((f'["partition",{{"topic":"{OFFSETS_TOPIC}",', '["setting",'))


def _rows(name: str, snapshots: Mapping[str, Snapshot], wanted: Wanted) -> Iterator[tuple[str, Any]]:
    try:
        yield from read_snapshot(snapshots[name].path, wanted)
    except Torn as error:
        raise _Unusable(name, str(error)) from None
    except OSError as error:
        raise _Unusable(name, unreadable(error)) from None


def _unusable(name: str, reason: str) -> Unasked:
    return Unasked("file", name, reason, source=name)
