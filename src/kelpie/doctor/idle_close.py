"""Nodes that went because an idle connection closed, while their consumer goes on.

KoP removes a node when the connection that sent FindCoordinator closes. The Java client closes a connection
that was idle for connections.max.idle.ms, nine minutes by default; it sends FindCoordinator on a connection
that it does not need again. The node of a consumer that was closed goes in the same way. So something must
show that the consumer goes on:

- it is still a member of its group;
- its group is still counted under its own name, in scrapes made after the node went;
- without times or members: traffic without a group began where this group used to read, or on a topic that
  no other group can have read. That makes it probable.

A restart of a broker removes nodes, too. If scrapes show one, nothing is said here.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kelpie.attribution.counters import Series
from kelpie.cluster import ClusterView
from kelpie.cluster.mappings import Vanished
from kelpie.cluster.traffic import Span
from kelpie.doctor.attribution import Loss, Registered, by_path, losses, partition_of, registered, short
from kelpie.doctor.case import Case
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


class IdleClose(NamedTuple):
    """A node that went, and what shows that its consumer goes on."""

    vanished: Vanished
    member: Registered | None = None
    losses: tuple[Loss, ...] = ()
    """Its traffic without a group, probably."""
    counted: tuple[Span, Series] | None = None
    """Its traffic under its own name."""

    @property
    def group(self) -> str:
        return self.vanished.node.group


def idle_closes(cluster: ClusterView, cases: Sequence[Case]) -> list[IdleClose]:
    """One for each node that went in this way."""
    traffic = cluster.traffic_history
    vanished = [each for each in cluster.mapping_history.vanished if not _has_another_node(each)]
    if not vanished or traffic.restarted:
        return []
    members = by_path(registered(cluster, cases))
    known = {case.group for case in cases if case.members is not None}
    lost: defaultdict[TopicPartition, list[Loss]] = defaultdict(list)
    for loss in losses(cluster, traffic.newest):
        lost[partition_of(loss.series)].append(loss)
    closes: list[IdleClose] = []
    open_questions: list[Vanished] = []
    for each in vanished:
        group = each.node.group
        of_group = [member for member in members.get(each.node.path, ()) if member.group == group]
        gone_at = each.gone.listing.at
        later = _counted_after(traffic.newest, group, gone_at) if gone_at is not None else None
        if of_group:
            closes.append(IdleClose(each, of_group[0], _lost_by(lost, of_group[0]), later))
        elif group not in known and later is not None:
            closes.append(IdleClose(each, counted=later))
        elif group not in known and _is_java_default(each):
            open_questions.append(each)
    return closes + _probable(cluster, open_questions)


def _lost_by(lost: Mapping[TopicPartition, Sequence[Loss]], member: Registered) -> tuple[Loss, ...]:
    """Traffic without a group of the partitions that this member holds, unless its group is counted there."""
    held = {TopicPartition(short(name.topic), name.partition) for name in member.member.assigned or ()}
    return tuple(
        loss
        for name in sorted(held)
        for loss in lost.get(name, ())
        if loss.series._replace(group=member.group) not in loss.span.growth
    )


def _probable(cluster: ClusterView, vanished: Sequence[Vanished]) -> list[IdleClose]:
    """Of several nodes that went, those whose groups can have read what was counted to no group."""
    traffic = cluster.traffic_history
    groups = {each.node.group for each in vanished}
    readers: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for group in groups:
        for series in traffic.labelled.get(group, ()):
            readers[series.topic, series.partition].add(group)
    uncounted = {group for group in groups if group not in traffic.labelled}
    lost_by_group: dict[str, list[Loss]] = {}
    for loss in losses(cluster, traffic.newest):
        # Those that used to read this partition; if there are none, those that were never counted at all.
        candidates = readers.get((loss.series.topic, loss.series.partition)) or uncounted
        for group in candidates:
            # A group that the same broker counts there under its own name has its label.
            if loss.series._replace(group=group) not in loss.span.growth:
                lost_by_group.setdefault(group, []).append(loss)
    if not lost_by_group:
        return []
    closes = []
    for each in vanished:
        group = each.node.group
        counted = _counted_after(traffic.newest, group, None)
        if group in lost_by_group or counted is not None:
            closes.append(IdleClose(each, None, tuple(lost_by_group.get(group, ())), counted))
    return closes


def _counted_after(spans: Iterable[Span], group: str, at: Instant | None) -> tuple[Span, Series] | None:
    """Growth of the group's own series after this time. None for the time: at any time."""
    for span in spans:
        first = span.first.scrape.at if span.first is not None else None
        is_after = at is None or (first is not None and first >= at)
        if span.first is not None and is_after and group in span.grown_series:
            return span, span.grown_series[group][0]
    return None


def _has_another_node(vanished: Vanished) -> bool:
    """Whether its group has other clients: then traffic of the group does not say that this one goes on."""
    return any(node.group == vanished.node.group for node in vanished.gone.nodes.values())


def _is_java_default(vanished: Vanished) -> bool:
    """Whether it has the client id that the Java client makes of the group's name."""
    node = vanished.node
    return re.fullmatch(rf"consumer-{re.escape(node.group)}-.+", node.client_id) is not None
