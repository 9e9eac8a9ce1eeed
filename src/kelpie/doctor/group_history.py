"""What a case tells of a group's past: lag, progress and commits over time, rebalances, who left and why.

Arithmetic only, no judgement. All comes from rows that the case has: ends of logs that this survey and
earlier ones saw, the tail of the offsets topic, and logs. `GroupHistory` is the same whether a case or
tables tell it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.generation_changes import GenerationChange, generation_changes
from kelpie.doctor.membership import is_late_poll, person_in
from kelpie.doctor.positions import Track, lag
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind

LEFT, EXPIRED, FENCED, POLL_INTERVAL, UNKNOWN = "left", "expired", "fenced", "poll-interval", "unknown"
"""Why a member is gone, in the words of the table membership_interval."""

_TOGETHER_MS = 10_000
"""Ends that were asked within this time belong to one look."""
_SAME_DEPARTURE_MS = 120_000
_STEPS_MS = (10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000)
_MOST_STEPS = 120
_DEPARTURES = (EventKind.MEMBER_LEFT, EventKind.MEMBER_EXPIRED, EventKind.MEMBER_FENCED)


class Value(NamedTuple):
    at: Instant
    value: float


class Rebalance(NamedTuple):
    """A new generation, or the moment at which the group became empty."""

    at: Instant
    generation: int | None
    members: int | None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    cause: str = ""
    """One word; empty: nothing tells."""
    reason: str = ""
    """In the words of a log."""
    duration_ms: int | None = None
    source: str = ""


class Departure(NamedTuple):
    """A member that is gone."""

    at: Instant
    member: str
    why: str
    """One of the words above."""
    reason: str = ""
    """In the words of a log."""
    text: str = ""
    """The line that says so."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """By time. What is not known is not there."""

    lag: Sequence[Value] = ()
    """Records left to read, over all partitions."""
    lag_ms: Sequence[Value] = ()
    """How old the oldest of them is."""
    records: Sequence[Value] = ()
    """Records a second that commits got further, since the value before."""
    commits: Sequence[Value] = ()
    """Commits a minute, since the value before."""
    members: Sequence[Value] = ()
    rebalances: Sequence[Rebalance] = ()
    departures: Sequence[Departure] = ()

    @property
    def begin(self) -> Instant | None:
        return min(self._bounds(0), default=None)

    @property
    def end(self) -> Instant | None:
        return max(self._bounds(-1), default=None)

    def _bounds(self, place: int) -> Iterator[Instant]:
        for rows in (self.lag, self.lag_ms, self.records, self.commits, self.members, self.rebalances):
            if rows:
                yield rows[place].at


def group_history(case: Case) -> GroupHistory:
    records, commits = _progress(case)
    changes = generation_changes(case)
    return GroupHistory(
        lag=_lags(case.tracks),
        records=records,
        commits=commits,
        members=[Value(change.at, change.members) for change in changes if change.members is not None],
        rebalances=[_rebalance(change) for change in changes],
        departures=_departures(case, changes),
    )


def _lags(tracks: Sequence[Track]) -> list[Value]:
    """At times at which the lag of every partition is known."""
    looks: defaultdict[Instant, dict[TopicPartition, int]] = defaultdict(dict)
    for track in tracks:
        for end in track.ends:
            offset = track.offset_at(end.at) if end.at is not None else None
            left = lag(offset, end) if offset is not None else None
            if left is not None and end.at is not None:
                looks[end.at // _TOGETHER_MS * _TOGETHER_MS][track.name] = left
    whole = {at: lags for at, lags in looks.items() if len(lags) == len(tracks)}
    return [Value(at, sum(lags.values())) for at, lags in sorted(whole.items())]


def _progress(case: Case) -> tuple[list[Value], list[Value]]:
    """Records a second and commits a minute, as the history in the offsets topic shows them."""
    steps: list[tuple[Instant, int]] = []
    times: set[Instant] = set()
    for rows in case.commits.values():
        before: int | None = None
        for row in rows:
            if row.removed or row.at is None or row.at > case.cluster.now:
                before = None
                continue
            times.add(row.at)
            if before is not None and row.offset > before:
                steps.append((row.at, row.offset - before))
            before = row.offset
    if not times:
        return [], []
    begin, end = min(times), case.cluster.now
    step = next((each for each in _STEPS_MS if (end - begin) / each <= _MOST_STEPS), _STEPS_MS[-1])
    ends = range((begin // step + 1) * step, end + step, step)
    records, commits = [0] * len(ends), [0] * len(ends)
    for at, advance in steps:
        records[bisect_left(ends, at)] += advance
    for at in times:
        commits[bisect_left(ends, at)] += 1
    # The last step is not over.
    lasted = [step] * (len(ends) - 1) + [max(1000, step - (ends[-1] - end))]
    upto = [*ends[:-1], end]
    return (
        [Value(at, each * 1000 / ms) for at, each, ms in zip(upto, records, lasted, strict=True)],
        [Value(at, each * 60_000 / ms) for at, each, ms in zip(upto, commits, lasted, strict=True)],
    )


def _rebalance(change: GenerationChange) -> Rebalance:
    return Rebalance(
        change.at,
        change.generation if change.generation >= 0 else None,
        change.members,
        change.came,
        change.went,
        "",
        change.reason,
        change.at - change.began if change.began is not None else None,
        change.source,
    )


def _departures(case: Case, changes: Iterable[GenerationChange]) -> list[Departure]:
    """What logs of the coordinator tell; and those that only records show, with the consumers' own words."""
    told = [
        Departure(event.at, person_in(event), _why(event), _reason(event), event.text, event.source)
        for event in case.events_of(*_DEPARTURES)
        if event.at is not None
    ]
    paused = [event for event in case.events_of(EventKind.POLL_INTERVAL_EXCEEDED) if event.at is not None]
    for change in changes:
        for member in change.went:
            if any(one.member == member and abs(one.at - change.at) < _SAME_DEPARTURE_MS for one in told):
                continue
            own = next(
                (event for event in paused if person_in(event) == member and _is_near(event, change)), None
            )
            told.append(
                Departure(change.at, member, UNKNOWN, source=change.source)
                if own is None
                else Departure(change.at, member, POLL_INTERVAL, _reason(own), own.text, own.source)
            )
    return sorted(dict.fromkeys(told))


def _is_near(event: Event, change: GenerationChange) -> bool:
    return event.at is not None and 0 <= change.at - event.at < _SAME_DEPARTURE_MS


def _reason(event: Event) -> str:
    """Kafka says "not provided" where the client gave no reason."""
    return "" if event.reason == "not provided" else event.reason


def _why(event: Event) -> str:
    if event.kind is EventKind.MEMBER_EXPIRED:
        return EXPIRED
    if event.kind is EventKind.MEMBER_FENCED:
        return FENCED
    return POLL_INTERVAL if is_late_poll(event) else LEFT
