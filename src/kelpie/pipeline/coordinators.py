"""coordinator_timeline and coordinator_outage: who led each partition of the offsets topic, and when nobody.

Both come of what the driver knows of the cluster: descriptions of partitions, what controllers and
coordinators wrote in their logs, and when brokers were away. Kafka 0.9 goes on naming a leader that is dead,
so a leader's time ends when its broker went.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from kelpie.doctor.case import ClusterView
from kelpie.doctor.spells import all_at_once
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind
from kelpie.pipeline.sources.inventory import moment

NOBODY = -1


class _Word(NamedTuple):
    """Somebody said who leads."""

    at: Instant
    node: int
    epoch: int
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
        for began, ended, evidence in _gaps(cluster, partition):
            view = cluster.view(partition)
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


def _gaps(
    cluster: ClusterView, partition: TopicPartition
) -> Iterator[tuple[Instant | None, Instant | None, str]]:
    """Times without a leader: the last one that is over, and the one that goes on."""
    view = cluster.view(partition)
    if view is None:
        return
    away = [cluster.outages.get(node, ()) for node in view.replicas]
    past = all_at_once(away)
    if past is not None:
        yield past.since, past.until, past.evidence.text
    if cluster.has_leader(partition) is False:
        lost = [event for event in _losses(cluster, partition) if event.at is not None]
        going_on = [it.since for own in away for it in own if it.until is None and it.since is not None]
        moments = [event.at for event in lost if event.at is not None]
        if going_on:
            moments.append(max(going_on))
        dead = [node for node in view.replicas if cluster.is_alive(node) is False]
        told = lost[-1].text if lost else f"brokers {', '.join(map(str, dead))} are dead"
        yield min(moments, default=None), None, told


def _losses(cluster: ClusterView, partition: TopicPartition) -> Iterable[Event]:
    return (
        event
        for event in cluster.partition_events.get(partition, ())
        if event.kind is EventKind.LEADER_CHANGED and event.details.get("leader") == str(NOBODY)
    )


def _words(cluster: ClusterView, partition: TopicPartition) -> Iterator[_Word]:
    leaders: set[int] = set()
    for view in (*cluster.earlier_views.get(partition, ()), *cluster.views.get(partition, ())):
        if view.at is not None and view.at <= cluster.now:
            dead = view.leader >= 0 and _is_away(cluster, view.leader, view.at)
            leaders.add(view.leader)
            yield _Word(view.at, NOBODY if dead else view.leader, view.leader_epoch, view.source)
    for event in cluster.partition_events.get(partition, ()):
        if event.at is None or event.at > cluster.now:
            continue
        if event.kind is EventKind.LEADER_CHANGED:
            node = NOBODY if event.details.get("leader") == str(NOBODY) else event.node
            if node is not None:
                leaders.add(node)
                yield _Word(event.at, node, _epoch(event), event.source)
    for node in leaders:
        for outage in cluster.outages.get(node, ()):
            if outage.since is not None and _leads(cluster, partition, node, outage.since):
                yield _Word(outage.since, NOBODY, -1, outage.source)


def _epoch(event: Event) -> int:
    text = event.details.get("leader_epoch", event.details.get("epoch", ""))
    return int(text) if text.isdecimal() else -1


def _is_away(cluster: ClusterView, node: int, at: Instant) -> bool:
    return any(
        (it.since is None or it.since <= at) and (it.until is None or at < it.until)
        for it in cluster.outages.get(node, ())
    )


def _leads(cluster: ClusterView, partition: TopicPartition, node: int, at: Instant) -> bool:
    """Whether it was the leader right before, as far as anybody said."""
    said = [
        (view.at, view.leader)
        for view in (*cluster.earlier_views.get(partition, ()), *cluster.views.get(partition, ()))
        if view.at is not None and view.at < at
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
