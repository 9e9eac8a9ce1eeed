"""Snapshots of one cluster that `kelpie collect` took, as observations."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kelpie.evidence.snapshot_choice import Choice, LeaderChanges, choose, failed_row, other_cluster
from kelpie.evidence.snapshot_files import Header, Torn, read_snapshot
from kelpie.evidence.unreadable import unreadable
from kelpie.observations import OFFSETS_TOPIC, Observations, Unasked
from kelpie.observations.earlier import EARLIER_KINDS, earlier_rows
from kelpie.observations.encoding import KNOWN, add, gathered
from kelpie.places import Place

_MOST_TRIES = 10


class Snapshot(NamedTuple):
    path: Place
    header: Header


@dataclass(slots=True)
class _Reading:
    """Snapshots while they are read. Where one turns out to be damaged, all are read again without it."""

    snapshots: Mapping[str, Snapshot]
    rows_left: int
    damaged: dict[str, str] = field(default_factory=dict)
    """Name → reason."""

    def rows(self, name: str, wanted: "Wanted") -> Iterator[tuple[str, Any]]:
        if name in self.damaged:
            return
        try:
            for row in read_snapshot(self.snapshots[name].path, wanted):
                self.rows_left -= 1
                if self.rows_left < 0:
                    raise Torn("It is left out: there are more rows than are held in memory.")
                yield row
        except Torn as error:
            self.damaged[name] = str(error)
        except OSError as error:
            self.damaged[name] = unreadable(error)


Wanted = Callable[[str], bool]
"""Decides by the beginning of a line whether the row is read."""


def read_snapshots(
    snapshots: Mapping[str, Snapshot], unasked: list[Unasked], *, most: int = sys.maxsize
) -> Observations:
    """What counts of all snapshots, up to `most` rows. A row in `unasked` names each that cannot be used."""
    usable = dict(snapshots)
    for _ in range(_MOST_TRIES):
        choice = choose({name: snapshot.header for name, snapshot in usable.items()})
        reading = _Reading(usable, most)
        observations = _read_chosen(choice, reading)
        if not reading.damaged:
            unasked += [
                _unusable(name, other_cluster(usable[name].header, choice)) for name in choice.foreign
            ]
            return observations
        unasked += [_unusable(name, reason) for name, reason in reading.damaged.items()]
        usable = {name: snapshot for name, snapshot in usable.items() if name not in reading.damaged}
    unasked += [_unusable(name, "Too many other snapshots are damaged to choose from.") for name in usable]
    return Observations()


def _read_chosen(choice: Choice, reading: _Reading) -> Observations:
    observations = Observations()
    leaders = LeaderChanges()
    for name in choice.in_order:
        if name == choice.newest:
            survey = gathered(reading.rows(name, lambda _: True))
            observations.partitions += leaders.rows()
        else:
            survey = Observations()
            is_used = name in choice.earlier
            for kind, row in reading.rows(name, _of_earlier if is_used else _of_unused):
                if kind in ("partition", "setting"):
                    add(survey, kind, row)
                elif is_used:
                    for kept_row in earlier_rows(kind, row):
                        add(survey, *kept_row)
            leaders.add(survey.partitions)
            survey.partitions = []
        observations.add(survey)
    listed = {group for listing in observations.listings for group in listing.groups}
    _add_last_offsets(observations, listed | observations.known_groups.keys(), choice, reading)
    for name in choice.failed:
        for kind, row in reading.rows(name, lambda _: True):
            if kind == "unasked":
                observations.unasked.append(failed_row(row))
            elif kind == KNOWN:
                add(observations, kind, row)
    return observations


def _add_last_offsets(
    observations: Observations, groups: Collection[str], choice: Choice, reading: _Reading
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
            for kind, seen in reading.rows(name, _of_kinds("committed"))
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


def _unusable(name: str, reason: str) -> Unasked:
    return Unasked("file", name, reason, source=name)
