"""When the output of a tool was made, and on which day a log was written.

Tools do not print the time, and copied files have the time of the copying. The first of these that is there
dates an output:

1. the text itself names a moment ("timed out at 1794776373922");
2. a log beside it, as "topics.txt.err" beside "topics.txt", has times;
3. the file's time, if file times are to be trusted: they are, when logs were last changed when they say;
4. what it shows: a leader, a committed offset, a member that logs and the offsets topic say came at 20:58:24
   and changed again at 20:59:38 were seen in between;
5. others of the same batch, as "during-list.txt" and "during-topics.txt" in one folder: they were made one
   after the other, so each is put as near to the latest of them as what it shows allows.

Lines of some logs have a time of day, or a day without a year. Other files of the same incident know the
date: such a log gets the day, or the year, at which it lies among them. Without other files, the time of its
own file counts, if files have kept their times.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import NamedTuple

from kelpie.evidence.describes import Output
from kelpie.evidence.logs import Float, LogReading
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant, utc
from kelpie.observations import OFFSETS_TOPIC, EventKind, Observations, PartitionView
from kelpie.observations.positions import NO_OFFSET

_FIRST_WORD = re.compile(r"[A-Za-z]+|\d+")
_SAME_CHANGE_MS = 120_000
_BESIDE = (".err", ".stderr", ".log")
_WORDS = {"before": 0, "pre": 0, "healthy": 0, "during": 2, "outage": 2, "after": 3, "post": 3}
_OTHER_WORD = 1
_NUMBERED = re.compile(r"([0-9]{1,18})([a-z]?)(?![a-z0-9])", re.I)
_DAY_MS = 86_400_000
_MOST_DAYS = 800
_MOST_COMPARISONS = 20_000_000
"""Of outputs with what is known to have changed. Those for which it would take more remain without a time."""


class Stretch(NamedTuple):
    """From when, and until when, something was so. None: unknown."""

    begin: Instant | None = None
    end: Instant | None = None

    def nearest(self, at: Instant | None) -> Instant | None:
        """The moment of the stretch that is nearest to another one; without another one, the earliest."""
        if at is None:
            return self.begin if self.begin is not None or self.end is None else self.end - 1
        if self.begin is not None:
            at = max(at, self.begin)
        return at if self.end is None else min(at, self.end - 1)


@dataclass(slots=True)
class Dated:
    """An output, when it was made as far as that is known, and the time of its file."""

    output: Output
    modified: Instant | None
    at: Instant | None = None
    stretch: Stretch = field(default_factory=Stretch)
    """When it can have been made, by what it shows."""

    @property
    def folder(self) -> str:
        return self.output.name.rpartition("/")[0]

    @property
    def batch(self) -> tuple[str, str]:
        word = _FIRST_WORD.search(self.output.name.rpartition("/")[2])
        return self.folder, word[0].lower() if word is not None else ""


def date_outputs(
    outputs: Sequence[Dated],
    readings: Sequence[LogReading],
    modified: Mapping[str, Instant | None],
    history: Observations,
) -> None:
    """Sets `at` where it can be known. `modified` is by file name, `history` has what knows its own time."""
    logs = {reading.name: reading for reading in readings}
    trusted = file_times_tell(readings, modified)
    changes = _Changes(history, [view for dated in outputs for view in dated.output.observations.partitions])
    batches: dict[tuple[str, str], Instant] = {}
    for dated in outputs:
        dated.at = _exact(dated, logs, trusted)
        if dated.at is None:
            dated.stretch = changes.when(dated.output.observations)
        known = dated.at if dated.at is not None else dated.stretch.begin
        if known is not None:
            batches[dated.batch] = max(known, batches.get(dated.batch, known))
    for dated in outputs:
        if dated.at is None:
            dated.at = dated.stretch.nearest(batches.get(dated.batch))


def without_time(
    outputs: Iterable[Dated], readings: Sequence[LogReading], modified: Mapping[str, Instant | None]
) -> list[Dated]:
    """The outputs that only history can date."""
    logs = {reading.name: reading for reading in readings}
    trusted = file_times_tell(readings, modified)
    return [dated for dated in outputs if _exact(dated, logs, trusted) is None]


def _exact(dated: Dated, logs: Mapping[str, LogReading], trusted: bool) -> Instant | None:
    if dated.output.times:
        return max(dated.output.times)
    names = [dated.output.name + ending for ending in _BESIDE]
    seen = [logs[name].last for name in names if name in logs]
    return max((at for at in seen if at is not None), default=dated.modified if trusted else None)


def file_times_tell(readings: Iterable[LogReading], modified: Mapping[str, Instant | None]) -> bool:
    """Whether files have kept their times: a log was last written to when its last line was."""
    agree = differ = 0
    for reading in readings:
        changed = modified.get(reading.name)
        if reading.last is not None and changed is not None and reading.missing is Float.FIXED:
            if abs(changed - reading.last) <= _SAME_CHANGE_MS:
                agree += 1
            else:
                differ += 1
    if agree + differ:
        return agree > differ
    # No log to compare with: equal or nearly equal times are those of one copying.
    times = [at for at in modified.values() if at is not None]
    return len(times) > 1 and max(times) - min(times) > _SAME_CHANGE_MS


def in_order(outputs: Iterable[Dated]) -> list[Dated]:
    """By time; those without one first, by what their names say."""
    return sorted(
        outputs,
        key=lambda output: (output.at or -1, _WORDS.get(output.batch[1], _OTHER_WORD), output.output.name),
    )


def name_order(name: str) -> tuple[int, str, int, str]:
    """The order that names of files tell: by a number at the beginning ("04a"), then by words as "before"."""
    base = name.rpartition("/")[2].lower()
    number = _NUMBERED.match(base)
    words = (_WORDS[word] for word in re.findall("[a-z]+", base) if word in _WORDS)
    return (
        int(number[1]) if number is not None else -1,
        number[2] if number is not None else "",
        next(words, _OTHER_WORD),
        name,
    )


def stamped(observations: Observations, at: Instant | None) -> Observations:
    """The rows of an output, with their time."""
    return Observations(
        partitions=[row._replace(at=at) for row in observations.partitions],
        listings=[replace(row, at=at) for row in observations.listings],
        answers=[replace(row, at=at) for row in observations.answers],
        states=[row._replace(at=at) for row in observations.states],
        committed=[row._replace(at=at) for row in observations.committed],
        ends=[row._replace(at=at) for row in observations.ends],
        zookeeper_groups=[replace(row, at=at) for row in observations.zookeeper_groups],
        removals=[replace(row, at=at) for row in observations.removals],
        settings=observations.settings,
        unasked=[replace(row, at=at) for row in observations.unasked],
        known_groups=observations.known_groups,
    )


class _Changes:
    """What is known to have changed, when, to what."""

    def __init__(self, history: Observations, views: Iterable[PartitionView]) -> None:
        self._partitions = 1 + max(
            (view.partition for view in views if view.topic == OFFSETS_TOPIC), default=-1
        )
        self._of: dict[object, list[tuple[Instant, object]]] = defaultdict(list)
        for at, key, value in _changes(history):
            self._of[key].append((at, value))
        self._left = _MOST_COMPARISONS

    def when(self, output: Observations) -> Stretch:
        """The stretch of time whose state is most like what the output shows."""
        shown = self._shown(output)
        self._left -= sum(len(self._of.get(key, ())) for key in shown)
        if self._left < 0:
            return Stretch()
        changes = [
            (at, key, _worth(value, now)) for key, value in shown.items() for at, now in self._of.get(key, ())
        ]
        changes.sort(key=lambda change: change[0])
        score = best = worst = 0
        stretch = Stretch()
        state: dict[object, int] = {}
        for at, together in groupby(changes, key=lambda change: change[0]):
            before = score
            for _, key, worth in together:
                score += worth - state.get(key, 0)
                state[key] = worth
            worst = min(worst, score)
            if score > best:
                best, stretch = score, Stretch(at)
            elif score < before and stretch.end is None:
                stretch = Stretch(stretch.begin, at)
        return stretch if best > 0 or worst < 0 else Stretch()

    def _shown(self, output: Observations) -> dict[object, object]:
        shown: dict[object, object] = {view.name: view.leader for view in output.partitions}
        for row in output.committed:
            if row.offset != NO_OFFSET:
                shown[row[:3]] = row.offset
        shown |= {("removed", row.group): True for row in output.removals}
        for state in output.states:
            if state.coordinator >= 0 and self._partitions:
                partition = TopicPartition(OFFSETS_TOPIC, partition_for(state.group, self._partitions))
                shown[partition] = state.coordinator
            if state.members:
                shown[state.group] = frozenset(member.member_id for member in state.members)
        return shown


def _changes(history: Observations) -> Iterator[tuple[Instant, object, object]]:
    for event in history.events:
        if event.kind is EventKind.LEADER_CHANGED and event.at is not None and event.topic is not None:
            yield event.at, TopicPartition(event.topic, event.partition or 0), event.node
    for commit in history.commits:
        if commit.at is not None:
            yield commit.at, commit[:3], commit.offset
    for removal in history.removals:
        if removal.at is not None:
            yield removal.at, ("removed", removal.group), True
    for generation in history.generations:
        if generation.at is not None:
            yield (
                generation.at,
                generation.group,
                frozenset(member.member_id for member in generation.members),
            )


def _worth(shown: object, known: object) -> int:
    if shown == known:
        return 1
    # Kafka 0.9 goes on naming a leader that is dead, so "there is none" says nothing against a name.
    return 0 if known == -1 else -1


def settle_dates(
    readings: Sequence[LogReading], modified: Mapping[str, Instant | None], history: Observations
) -> None:
    """Shifts dateless logs to their date; one whose date is unknown loses its times."""
    dateless = [reading for reading in readings if reading.missing is not Float.FIXED]
    if not dateless:
        return
    dated = [reading for reading in readings if reading.missing is Float.FIXED]
    of_logs = ((log.first, log.last) for log in dated)
    known = [at for at in chain.from_iterable(of_logs) if at is not None]
    known += [commit.at for commit in history.commits if commit.at is not None]
    span = (min(known), max(known)) if known else None
    trusted = file_times_tell(dated, modified) if dated else True
    for reading in dateless:
        reading.shift(_shift(reading, span, modified.get(reading.name) if trusted else None))


def _shift(reading: LogReading, known: tuple[Instant, Instant] | None, changed: Instant | None) -> int | None:
    """`known`: the first and the last time that is certain."""
    first = reading.first
    if first is None:
        return None
    last = reading.last if reading.last is not None else first
    if known is not None:
        begin, end = known
        fitting = [
            shift for shift in _shifts(reading, begin, end) if first + shift <= end and last + shift >= begin
        ]
        if fitting:
            return max(fitting, key=lambda shift: (min(last + shift, end) - max(first + shift, begin), shift))
    if changed is not None:
        return min(
            _shifts(reading, changed, changed), key=lambda shift: abs(last + shift - changed), default=None
        )
    return None


def _shifts(reading: LogReading, begin: Instant, end: Instant) -> Iterable[int]:
    """By how much its times could be off, so that it lies somewhere between."""
    assert reading.first is not None
    if reading.missing is Float.DATE:
        earliest = (begin - reading.first) // _DAY_MS - 1
        days = min((end - begin) // _DAY_MS, _MOST_DAYS)
        return [day * _DAY_MS for day in range(earliest, earliest + days + 4)]
    day = utc(reading.first)
    years = range(_year(begin) - 1, min(_year(end), _year(begin) + 10) + 2)
    return [
        (
            datetime(year, day.month, min(day.day, 28), tzinfo=UTC)
            - day.replace(day=min(day.day, 28)).replace(hour=0, minute=0, second=0, microsecond=0)
        ).days
        * _DAY_MS
        for year in years
    ]


def _year(at: Instant) -> int:
    return utc(at).year
