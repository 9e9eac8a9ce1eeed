"""Whether a topic is there, gone, hidden from the caller, or another one of the same name.

- Gone: every broker that was asked for it by name in the last survey answers UNKNOWN_TOPIC_OR_PARTITION.
  Brokers say that only to a caller who may describe the topic.
- Hidden: a broker answers TOPIC_AUTHORIZATION_FAILED. Whether there is such a topic, it does not say. A topic
  that is only missing from a listing of all topics (Kafka before 2.1) may be gone or hidden.
- Created again: an earlier survey saw another id (Kafka 2.8 and later), or a higher leader epoch: epochs
  only grow as long as a topic lives. While the id is the same, it is the same topic, whatever epoch a broker
  names that has not heard of the newest election.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import LogEnds, PartitionView, TopicView
from kelpie.observations.earlier import ONE_SURVEY_MS
from kelpie.observations.ordering import grouped

_UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Existence(Enum):
    EXISTS = auto()
    GONE = auto()
    HIDDEN = auto()
    """The caller may not describe it."""
    UNLISTED = auto()
    """Not in a listing of all topics: it is gone or hidden."""
    DISPUTED = auto()
    """Some brokers know it, and others do not."""
    UNKNOWN = auto()


class Recreation(NamedTuple):
    """A topic was deleted and created again under its name."""

    topic: str
    until: Instant
    """The old topic was last seen then."""
    since: Instant
    """The new topic was first seen then."""
    rows: tuple[TopicView | LogEnds | PartitionView, ...]
    """What shows it: a row of the old topic, then one of the new topic."""


@dataclass(frozen=True)
class Topics:
    """What surveys saw of topics. Empty where nobody asked for topics by name.

    Every group that reads a topic asks the same of it: what was worked out is kept.
    """

    views: Mapping[str, tuple[TopicView, ...]]
    """By time."""
    recreations: Mapping[str, Recreation]

    def newest(self, topic: str) -> tuple[TopicView, ...]:
        """The rows of the last survey that asked for it."""
        rows = self.views.get(topic, ())
        last = max((row.at for row in rows if row.at is not None), default=None)
        return tuple(
            row for row in rows if last is None or (row.at is not None and row.at > last - ONE_SURVEY_MS)
        )

    def existence(self, topic: str) -> Existence:
        known = self._existence.get(topic)
        if known is None:
            known = self._existence[topic] = self._exists(topic)
        return known

    def id_of(self, topic: str) -> str:
        """Its id now. Empty: it has none, or brokers differ."""
        known = self._ids.get(topic)
        if known is None:
            ids = {row.topic_id for row in self.newest(topic) if row.topic_id}
            known = self._ids[topic] = ids.pop() if len(ids) == 1 else ""
        return known

    @cached_property
    def _existence(self) -> dict[str, Existence]:
        return {}

    @cached_property
    def _ids(self) -> dict[str, str]:
        return {}

    def _exists(self, topic: str) -> Existence:
        rows = self.newest(topic)
        # Rows of an earlier survey name no broker. Only those that were asked now can say that it is gone.
        rows = tuple(row for row in rows if row.told_by is not None) or rows
        if not rows:
            return Existence.UNKNOWN
        knowing = [row for row in rows if not row.error]
        missing = [row for row in rows if row.error == _UNKNOWN_TOPIC]
        if knowing:
            return Existence.DISPUTED if missing else Existence.EXISTS
        if any(row.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED for row in rows):
            return Existence.HIDDEN
        if not missing or len(missing) < len(rows):
            return Existence.UNKNOWN
        return Existence.GONE if all(row.by_name for row in missing) else Existence.UNLISTED


NO_TOPICS = Topics({}, {})


def topics_of(
    rows: Iterable[TopicView],
    ends: Mapping[TopicPartition, Sequence[LogEnds]],
    views: Mapping[TopicPartition, Sequence[PartitionView]],
) -> Topics:
    """`ends`, by time, and `views` have the leader epochs."""
    by_topic = grouped(rows, lambda row: row.topic)
    recreations = {}
    for topic, seen in by_topic.items():
        recreation = _by_ids(topic, seen)
        if recreation is not None:
            recreations[topic] = recreation
    for name, known in ends.items():
        if name.topic not in recreations:
            same_since = _same_since(by_topic.get(name.topic, ()))
            recreation = _by_epochs(name.topic, known, views.get(name, ()), same_since)
            if recreation is not None:
                recreations[name.topic] = recreation
    return Topics(by_topic, recreations)


def _by_ids(topic: str, rows: Sequence[TopicView]) -> Recreation | None:
    named = [row for row in rows if row.topic_id and row.at is not None]
    if not named or len({row.topic_id for row in named}) == 1:
        return None
    now = named[-1].topic_id
    new = next(row for row in named if row.topic_id == now)
    old = [row for row in named if row.topic_id != now and (row.at or 0) <= (new.at or 0)]
    if not old:
        return None  # Brokers differ in one survey; the next one shows which topic stays.
    return Recreation(topic, old[-1].at or 0, new.at or 0, (old[-1], new))


def _same_since(rows: Iterable[TopicView]) -> Instant | None:
    """Since when surveys have seen the id that it has now."""
    return min((row.at for row in rows if row.topic_id and row.at is not None), default=None)


def _by_epochs(
    topic: str, ends: Sequence[LogEnds], views: Sequence[PartitionView], same_since: Instant | None
) -> Recreation | None:
    """The highest epoch of the last survey counts: a broker may not have heard of it yet."""
    last = max((view.at for view in views if view.at is not None), default=None)
    if last is None:
        return None
    newest = [view for view in views if view.at is not None and view.at > last - ONE_SURVEY_MS]
    now = max(newest, key=lambda view: view.leader_epoch)
    if now.leader_epoch < 0 or now.at is None:
        return None
    until = now.at if same_since is None else min(now.at, same_since)
    old = [
        end for end in ends if end.at is not None and end.at < until and end.leader_epoch > now.leader_epoch
    ]
    return Recreation(topic, old[-1].at or 0, now.at, (old[-1], now)) if old else None


def of_present_topics(rows: Iterable[LogEnds], topics: Topics) -> list[LogEnds]:
    """Without the ends of topics that are gone or hidden now, and of earlier topics of the same name."""
    absent = {
        topic
        for topic in topics.views
        if topics.existence(topic) in (Existence.GONE, Existence.HIDDEN, Existence.UNLISTED)
    }
    return [row for row in rows if row.topic not in absent and not is_of_old_topic(row.topic, row.at, topics)]


def is_of_old_topic(topic: str, at: Instant | None, topics: Topics) -> bool:
    """Whether a survey's row of that time was about an earlier topic of this name."""
    recreation = topics.recreations.get(topic)
    return recreation is not None and at is not None and at < recreation.since
