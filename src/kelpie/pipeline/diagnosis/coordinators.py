"""coordinator_timeline and coordinator_outage: who led each partition of the offsets topic, and when nobody.

Both come of what the driver knows of the cluster: descriptions of partitions, what controllers and
coordinators wrote in their logs, and when brokers were away. Kafka 0.9 goes on naming a leader that is dead,
so a leader's time ends when its broker went.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from kelpie.cluster import ClusterView
from kelpie.cluster.outages import shared_outages
from kelpie.cluster.view import ONE_SURVEY_MS, are_of_one_survey
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind, PartitionView
from kelpie.pipeline.sources.inventory import moment

NOBODY = -1


class _Word(NamedTuple):
    """Somebody said who leads."""

    at: Instant
    node: int
    epoch: int
    evidence: str
    is_lost: bool = False
    """It was said that nobody leads; not only that a leader was dead, whom another one may have followed."""
    text: str = ""


class _Gap(NamedTuple):
    """A time without a leader, from its beginning to its end, each None if nobody knows."""

    began: Instant | None
    seen: Instant
    """There was certainly none then."""
    ended: Instant | None
    evidence: str


def timeline(cluster: ClusterView, name: str) -> list[dict[str, Any]]:
    """Rows of coordinator_timeline."""
    rows = []
    for partition in _partitions(cluster):
        words = _without_repetitions(sorted(_words(cluster, partition)))
        for word, after in zip_longest(words, words[1:]):
            rows.append(
                {
                    "cluster": name,
                    "offsets_partition": partition.partition,
                    "node": word.node if word.node != NOBODY else None,
                    "leader_epoch": word.epoch if word.epoch >= 0 else None,
                    "began": moment(word.at),
                    "ended": moment(after.at) if after is not None else None,
                    "evidence": word.evidence,
                }
            )
    return rows


def outages(cluster: ClusterView, name: str, groups: Mapping[int, Sequence[str]]) -> list[dict[str, Any]]:
    """Rows of coordinator_outage. `groups`: those that live on each offsets partition."""
    rows = []
    for partition in _partitions(cluster):
        view = cluster.view(partition)
        for began, _, ended, evidence in _gaps(cluster, partition):
            rows.append(
                {
                    "cluster": name,
                    "offsets_partition": partition.partition,
                    "began": moment(began),
                    "ended": moment(ended),
                    "brokers": list(view.replicas) if view is not None else [],
                    "groups": sorted(groups.get(partition.partition, ())),
                    "evidence": evidence,
                }
            )
    return rows


def _partitions(cluster: ClusterView) -> Iterator[TopicPartition]:
    return (TopicPartition(OFFSETS_TOPIC, number) for number in range(cluster.offsets_partitions or 0))


def _gaps(cluster: ClusterView, partition: TopicPartition) -> list[_Gap]:
    """Times without a leader, also those that are over.

    What was told last, of a partition whose leader is there in the end, is that somebody shut all brokers
    down: a broker gives up its partitions a second before it says that it is gone.
    """
    has_leader, view = cluster.has_leader(partition), cluster.view(partition)
    told = _told_gaps(sorted(_words(cluster, partition)))
    found = [gap for gap in told if gap.ended is not None or not has_leader]
    if view is not None:
        away = [cluster.outages.get(node, ()) for node in view.replicas]
        found += [_Gap(last.since, until, until, last.text) for last, until in shared_outages(away)]
        if has_leader is False:
            lost = [event for event in cluster.leader_losses(partition) if event.at is not None]
            gone = [it.since for own in away for it in own if it.until is None and it.since is not None]
            dead = [node for node in view.replicas if cluster.is_alive(node) is False]
            how = lost[-1].text if lost else f"brokers {', '.join(map(str, dead))} are dead"
            found.append(_Gap(max(gone, default=None), cluster.now, None, how))
    return _joined(found)


def _told_gaps(words: Sequence[_Word]) -> Iterator[_Gap]:
    """From where it was said that nobody leads to where it was said that somebody does."""
    gap: _Gap | None = None
    for word in words:
        if word.is_lost:
            gap = _Gap(word.at, word.at, None, word.text) if gap is None else gap._replace(seen=word.at)
        elif word.node != NOBODY and gap is not None:
            yield gap._replace(ended=word.at)
            gap = None
    if gap is not None:
        yield gap


def _joined(gaps: Iterable[_Gap]) -> list[_Gap]:
    """What several sources tell of one gap is one: it ends with the first of them that says so.

    Without those that are over as soon as they are told of.
    """
    found: list[_Gap] = []
    for gap in sorted(gaps, key=lambda it: (it.began or 0, it.seen)):
        last = found[-1] if found else None
        if last is None or (last.ended is not None and (gap.began or 0) > last.ended):
            found.append(gap)
            continue
        seen = max(last.seen, gap.seen)
        ends = [it for it in (last.ended, gap.ended) if it is not None and it >= seen]
        found[-1] = last._replace(seen=seen, ended=min(ends, default=None))
    return [gap for gap in found if gap.began is None or gap.began != gap.ended]


def _words(cluster: ClusterView, partition: TopicPartition) -> Iterator[_Word]:
    leaders: set[int] = set()
    for view in _views(cluster, partition):
        if view.at is not None and view.at <= cluster.now:
            dead = view.leader >= 0 and _names_the_dead(cluster, view, view.at)
            leaders.add(view.leader)
            leader = NOBODY if dead else view.leader
            told = f"{view.source} saw no leader"
            yield _Word(view.at, leader, view.leader_epoch, view.source, view.leader < 0, told)
    for event in cluster.partition_events.get(partition, ()):
        if event.at is None or event.at > cluster.now:
            continue
        if event.kind is EventKind.LEADER_CHANGED:
            node = NOBODY if event.details.get("leader") == str(NOBODY) else event.node
            if node is not None:
                leaders.add(node)
                yield _Word(event.at, node, _epoch(event), event.source, node == NOBODY, event.text)
    for node in leaders:
        for outage in cluster.outages.get(node, ()):
            if outage.since is not None and _leads(cluster, partition, node, outage.since):
                yield _Word(outage.since, NOBODY, -1, outage.source)


def _views(cluster: ClusterView, partition: TopicPartition) -> Iterator[PartitionView]:
    """Of the last look only the one that counts: others who were asked then may not have heard yet."""
    yield from cluster.earlier_views.get(partition, ())
    counts = cluster.view(partition)
    for view in cluster.views.get(partition, ()):
        if counts is None or view is counts or not are_of_one_survey(view, counts):
            yield view


def _epoch(event: Event) -> int:
    text = event.details.get("leader_epoch", event.details.get("epoch", ""))
    return int(text) if text.isdecimal() else -1


def _names_the_dead(cluster: ClusterView, view: PartitionView, at: Instant) -> bool:
    """As its leader. In one look, a broker is asked, and others are asked about it, but not at once."""
    slack = ONE_SURVEY_MS if view.told_by is not None else 0
    return any(
        (it.at_latest is None or it.at_latest - slack <= at) and (it.until is None or at < it.until)
        for it in cluster.outages.get(view.leader, ())
    )


def _leads(cluster: ClusterView, partition: TopicPartition, node: int, at: Instant) -> bool:
    """Whether it was the leader right before, as far as anybody said."""
    said = [
        (view.at, view.leader) for view in _views(cluster, partition) if view.at is not None and view.at < at
    ]
    said += [
        (event.at, event.node if event.node is not None else NOBODY)
        for event in cluster.partition_events.get(partition, ())
        if event.kind is EventKind.LEADER_CHANGED and event.at is not None and event.at < at
    ]
    return bool(said) and max(said)[1] == node


def _without_repetitions(words: Sequence[_Word]) -> list[_Word]:
    """What was said again says nothing new."""
    kept: list[_Word] = []
    for word in words:
        if not kept or kept[-1].node != word.node:
            kept.append(word)
    return kept
