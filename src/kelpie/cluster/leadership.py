"""Who led a partition, and the periods in which it had no leader.

Three kinds of witness report a leader, or that there is none: views of the partition, what controllers and
coordinators wrote in their logs, and outages of brokers. Kafka 0.9 goes on naming a leader that is dead, so
the time of a leader ends when its broker went.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kelpie.cluster.outages import shared_outages
from kelpie.cluster.view import ONE_SURVEY_MS, ClusterView, are_of_one_survey
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, PartitionView
from kelpie.observations.cluster import NO_LEADER


class LeaderReport(NamedTuple):
    """One witness reports who leads, at a time."""

    at: Instant
    node: int
    """NO_LEADER: none."""
    epoch: int
    source: str
    is_lost: bool = False
    """There is no leader. False where only a leader was dead, which another one may have followed."""
    text: str = ""


class LeaderlessPeriod(NamedTuple):
    """A period without a leader. Beginning and end are None if nobody knows them."""

    began: Instant | None
    seen: Instant
    """There was certainly no leader at this time."""
    ended: Instant | None
    text: str
    """What shows it."""


def leaders(cluster: ClusterView, partition: TopicPartition) -> list[LeaderReport]:
    """By time: the first report of each leader, or of none, before another one."""
    changes: list[LeaderReport] = []
    for report in sorted(_reports(cluster, partition)):
        if not changes or changes[-1].node != report.node:
            changes.append(report)
    return changes


def leaderless_periods(cluster: ClusterView, partition: TopicPartition) -> list[LeaderlessPeriod]:
    """By time, also those that are over.

    The last period of a partition is left out if a leader is there in the end: then all brokers were shut
    down, and each gave up its partitions a second before its log says that it is gone.
    """
    has_leader, view = cluster.has_leader(partition), cluster.view(partition)
    reported = _reported_periods(sorted(_reports(cluster, partition)))
    periods = [period for period in reported if period.ended is not None or not has_leader]
    if view is not None:
        outages = [cluster.outages.get(node, ()) for node in view.replicas]
        periods += [
            LeaderlessPeriod(last.since, until, until, last.text) for last, until in shared_outages(outages)
        ]
        if has_leader is False:
            periods.append(_current_period(cluster, partition, view))
    return _joined(periods)


def leaderless_views(views: Iterable[PartitionView]) -> Iterator[tuple[PartitionView, PartitionView]]:
    """Periods, now over, in which a partition was seen without a leader.

    Each is the first view without a leader, and the first one with a leader again. `views` are in the order
    of their times.
    """
    first: PartitionView | None = None
    for view in views:
        if view.leader < 0:
            first = first or view
        elif first is not None:
            yield first, view
            first = None


def _current_period(cluster: ClusterView, partition: TopicPartition, view: PartitionView) -> LeaderlessPeriod:
    losses = [event.text for event in cluster.leader_losses(partition) if event.at is not None]
    dead = [str(node) for node in view.replicas if cluster.is_alive(node) is False]
    text = losses[-1] if losses else f"brokers {', '.join(dead)} are dead"
    return LeaderlessPeriod(cluster.last_loss(view.replicas), cluster.now, None, text)


def _reported_periods(reports: Sequence[LeaderReport]) -> Iterator[LeaderlessPeriod]:
    """From a report that there is no leader to the next report of a leader."""
    period: LeaderlessPeriod | None = None
    for report in reports:
        if report.is_lost:
            if period is None:
                period = LeaderlessPeriod(report.at, report.at, None, report.text)
            period = period._replace(seen=report.at)
        elif report.node != NO_LEADER and period is not None:
            yield period._replace(ended=report.at)
            period = None
    if period is not None:
        yield period


def _joined(periods: Iterable[LeaderlessPeriod]) -> list[LeaderlessPeriod]:
    """Several witnesses of one period make one: it ends with the first of them that reports its end.

    Periods of no length are left out.
    """
    joined: list[LeaderlessPeriod] = []
    for period in sorted(periods, key=lambda period: (period.began or 0, period.seen)):
        last = joined[-1] if joined else None
        if last is None or (last.ended is not None and (period.began or 0) > last.ended):
            joined.append(period)
            continue
        seen = max(last.seen, period.seen)
        ends = [end for end in (last.ended, period.ended) if end is not None and end >= seen]
        joined[-1] = last._replace(seen=seen, ended=min(ends, default=None))
    return [period for period in joined if period.began is None or period.began != period.ended]


def _reports(cluster: ClusterView, partition: TopicPartition) -> Iterator[LeaderReport]:
    nodes: set[int] = set()
    for view in _views(cluster, partition):
        if view.at is not None and view.at <= cluster.now:
            nodes.add(view.leader)
            leader = NO_LEADER if _names_a_dead_leader(cluster, view, view.at) else view.leader
            text = f"{view.source} saw no leader"
            yield LeaderReport(view.at, leader, view.leader_epoch, view.source, view.leader < 0, text)
    for event, at in _leader_events(cluster, partition):
        if at <= cluster.now:
            node = NO_LEADER if event.details.get("leader") == str(NO_LEADER) else event.node
            if node is not None:
                nodes.add(node)
                is_lost = node == NO_LEADER
                yield LeaderReport(at, node, _epoch(event), event.source, is_lost, event.text)
    for node in nodes:
        for outage in cluster.outages.get(node, ()):
            if outage.since is not None and _led_before(cluster, partition, node, outage.since):
                yield LeaderReport(outage.since, NO_LEADER, -1, outage.source)


def _views(cluster: ClusterView, partition: TopicPartition) -> Iterator[PartitionView]:
    """Of the last survey only the view that counts: other brokers may not know of an election yet."""
    yield from cluster.earlier_views.get(partition, ())
    current = cluster.view(partition)
    for view in cluster.views.get(partition, ()):
        if current is None or view is current or not are_of_one_survey(view, current):
            yield view


def _leader_events(cluster: ClusterView, partition: TopicPartition) -> Iterator[tuple[Event, Instant]]:
    for event in cluster.partition_events.get(partition, ()):
        if event.kind is EventKind.LEADER_CHANGED and event.at is not None:
            yield event, event.at


def _epoch(event: Event) -> int:
    text = event.details.get("leader_epoch", event.details.get("epoch", ""))
    return int(text) if text.isdecimal() else -1


def _names_a_dead_leader(cluster: ClusterView, view: PartitionView, at: Instant) -> bool:
    """In one survey a broker is asked, and other brokers are asked about it, but not at the same moment."""
    slack = ONE_SURVEY_MS if view.told_by is not None else 0
    return any(
        (outage.at_latest is None or outage.at_latest - slack <= at)
        and (outage.until is None or at < outage.until)
        for outage in cluster.outages.get(view.leader, ())
    )


def _led_before(cluster: ClusterView, partition: TopicPartition, node: int, at: Instant) -> bool:
    """Whether the broker was the leader right before this time, as far as views and logs tell."""
    reported = [(view.at, view.leader) for view in _views(cluster, partition) if view.at is not None]
    reported += [
        (event_at, event.node if event.node is not None else NO_LEADER)
        for event, event_at in _leader_events(cluster, partition)
    ]
    before = [report for report in reported if report[0] < at]
    return bool(before) and max(before)[1] == node
