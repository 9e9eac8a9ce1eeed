"""Where a share group stands, and since when: arithmetic only, what KLP309 and KLP310 share.

A share group has a start in each partition: all records before it are done. Records behind the start may be
done, too, in any order. One record that is not acknowledged keeps the start where it is, for the time of a
record lock, and as often as it may be delivered: after that the broker gives it up, and the start moves. So a
start that stands for longer than that, with records waiting, shows that nobody takes records.

Positions come with descriptions of the group: one look has one position, and two looks show a standstill.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence
from kelpie.doctor.positions import STANDSTILL_MS
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import GroupState
from kelpie.observations.groups import SharePosition

_LOCK_MS, _DELIVERIES = 30_000, 5
"""group.share.record.lock.duration.ms and group.share.delivery.count.limit, unless set otherwise."""


@dataclass(frozen=True, slots=True)
class ShareTrack:
    """One partition, by time."""

    name: TopicPartition
    looks: tuple[tuple[GroupState, SharePosition], ...]
    end: int | None
    """Where its log ends now; None: unknown."""
    is_empty: bool
    """Whether the log is known to hold no record."""
    written_by: Instant | None
    """Since when the log is known to hold records behind the start."""

    @property
    def position(self) -> SharePosition:
        return self.looks[-1][1]

    @property
    def waiting(self) -> int | None:
        """Records that are not done. None: the broker does not tell."""
        row = self.position
        if self.is_empty:
            return 0
        if row.error or row.start < 0:
            return None
        if row.lag >= 0:
            return row.lag
        return None if self.end is None else max(0, self.end - row.start)

    @property
    def standing(self) -> tuple[tuple[GroupState, SharePosition], ...]:
        """The looks since it last moved."""
        run: list[tuple[GroupState, SharePosition]] = []
        for state, row in reversed(self.looks):
            if row.error or row.start != self.position.start or (run and _is_done(row, run[-1][1])):
                break
            run.append((state, row))
        return tuple(reversed(run))

    @property
    def standing_since(self) -> Instant | None:
        """Since then, at least, records wait and none is done."""
        for state, row in self.standing:
            if state.at is None or row.lag == 0:
                continue
            if row.lag > 0:
                return state.at
            return None if self.written_by is None else max(state.at, self.written_by)
        return None

    @property
    def evidence(self) -> list[Evidence]:
        run = self.standing or self.looks[-1:]
        shown = run if len(run) < 3 else (run[0], run[-1])
        return [Evidence.of(state, f"{self.name}: {_words(row)}") for state, row in shown]


def _is_done(before: SharePosition, after: SharePosition) -> bool:
    """Whether records were done in between: fewer are left."""
    return 0 <= after.lag < before.lag


def _words(row: SharePosition) -> str:
    if row.error:
        return f"error {describe(row.error)} instead of its start"
    start = "no start yet" if row.start < 0 else f"all records before {row.start} are done"
    return start + (f", {row.lag} are left" if row.lag >= 0 else "")


def share_tracks(case: Case) -> list[ShareTrack]:
    """By partition, those of the newest description that has positions; of topics that are there."""
    states = [state for state in case.states if state.error is ErrorCode.NONE and state.share_positions]
    if not states:
        return []
    return sorted(_tracks(case, states), key=lambda track: track.name)


def _tracks(case: Case, states: list[GroupState]) -> Iterator[ShareTrack]:
    by_state = [(state, {row.name: row for row in state.share_positions}) for state in states]
    for name in by_state[-1][1]:
        if case.is_gone(name):
            continue  # The newest description has no positions in it, so an earlier one counted.
        ends = case.cluster.ends_over_time(name)
        end = ends[-1] if ends else None
        looks = tuple((state, rows[name]) for state, rows in by_state if name in rows)
        is_empty = end is not None and end.earliest == end.latest
        start = looks[-1][1].start
        behind = [each.at for each in ends if each.latest > start and each.at is not None]
        yield ShareTrack(name, looks, end.latest if end else None, is_empty, min(behind, default=None))


def stands_since(case: Case, track: ShareTrack) -> Instant | None:
    """Since when records wait and none is done. Few earlier looks are kept: where one of them found the group
    ill, and it has not moved since, that look knew for how long.
    """
    since = track.standing_since
    if since is None:
        return None
    return min([since, *(period.began for period in case.ill if period.seen >= since)])


def share_patience_ms(case: Case) -> int:
    """As long as one record may keep the start of a group with members; without members nothing can."""
    if not case.members:
        return STANDSTILL_MS
    lock = case.cluster.number("group.share.record.lock.duration.ms") or _LOCK_MS
    deliveries = case.cluster.number("group.share.delivery.count.limit") or _DELIVERIES
    return lock * deliveries
