"""When the output of a tool was made. Tools do not print it, and copied files have the time of the copying.

In this order, whatever is there first:

1. the text itself names a moment ("timed out at 1794776373922");
2. a log beside it, as "topics.txt.err" beside "topics.txt", has times;
3. the file's time, if file times are to be trusted: they are, when logs were last changed when they say;
4. what it shows: a leader, a committed offset, a member that logs and the offsets topic say came at 20:58:24
   and changed again at 20:59:38 were seen in between;
5. others of the same batch, as "during-list.txt" and "during-topics.txt" in one folder: they were made one
   after the other, so each is put as near to the latest of them as what it shows allows.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from kelpie.evidence.describes import Output
from kelpie.evidence.logs import Float, LogReading
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, EventKind, Observations, PartitionView
from kelpie.observations.positions import NO_OFFSET

_FIRST_WORD = re.compile(r"[A-Za-z]+|\d+")
_SAME_CHANGE_MS = 120_000
_BESIDE = (".err", ".stderr", ".log")
_WORDS = {"before": 0, "pre": 0, "healthy": 0, "during": 2, "outage": 2, "after": 3, "post": 3}
_OTHER_WORD = 1


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
    changes = _Changes(history, [view for output in outputs for view in output.output.found.partitions])
    batches: dict[tuple[str, str], Instant] = {}
    for dated in outputs:
        dated.at = _exact(dated, logs, trusted)
        if dated.at is None:
            dated.stretch = changes.when(dated.output.found)
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


def stamped(found: Observations, at: Instant | None) -> Observations:
    """The rows of an output, with their time."""
    return Observations(
        partitions=[row._replace(at=at) for row in found.partitions],
        listings=[replace(row, at=at) for row in found.listings],
        answers=[replace(row, at=at) for row in found.answers],
        states=[replace(row, at=at) for row in found.states],
        committed=[row._replace(at=at) for row in found.committed],
        ends=[row._replace(at=at) for row in found.ends],
        removals=[replace(row, at=at) for row in found.removals],
        settings=found.settings,
        unasked=[replace(row, at=at) for row in found.unasked],
        known_groups=found.known_groups,
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

    def when(self, found: Observations) -> Stretch:
        """The stretch of time whose state is most like what the output shows."""
        shown = self._shown(found)
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

    def _shown(self, found: Observations) -> dict[object, object]:
        shown: dict[object, object] = {view.name: view.leader for view in found.partitions}
        for row in found.committed:
            if row.offset != NO_OFFSET:
                shown[row[:3]] = row.offset
        shown |= {("removed", row.group): True for row in found.removals}
        for state in found.states:
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
