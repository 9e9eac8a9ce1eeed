"""Cases of groups that ZooKeeper keeps. Kafka may keep a group of the same name: that is another case."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

from kelpie.cluster.view import ClusterView
from kelpie.doctor.case import Case
from kelpie.observations import Event, Observations
from kelpie.observations.ordering import by_time, grouped

_OF_ZOOKEEPER = "zookeeper"
_MOST_SOURCES = 8


def is_of_zookeeper(event: Event) -> bool:
    """Whether consumers of 0.8, or ZooKeeper itself, said it."""
    return event.kind.value.startswith(_OF_ZOOKEEPER)


class ZooKeeperMaterial:
    """All rows about such groups, by group."""

    def __init__(self, observations: Observations, cluster: ClusterView) -> None:
        group = attrgetter("group")
        self._cluster = cluster
        self._snapshots = grouped(observations.zookeeper_groups, group)
        self._events = grouped(_with_groups(observations.events, cluster), group)
        self.groups = {*self._snapshots, *self._events}

    def case(self, group: str, *, has_namesake: bool = False) -> Case:
        snapshots, events = self._snapshots.get(group, ()), self._events.get(group, ())
        sources = [*(row.source for row in snapshots), *(event.source for event in events)]
        return Case(
            group=f"{group} (in ZooKeeper)" if has_namesake else group,
            cluster=self._cluster,
            known_from=tuple(dict.fromkeys(map(_place, sources)))[:_MOST_SOURCES],
            listed=True,
            events=by_time(events),
            in_zookeeper=True,
            zookeeper=by_time(snapshots),
            group_id=group,
        )


def _with_groups(events: Iterable[Event], cluster: ClusterView) -> Iterator[Event]:
    """An id of no usual form does not show where the group's name ends; the consumer's settings say it."""
    prefix = "consumer "
    groups = {
        of.removeprefix(prefix): value
        for (of, name), value in cluster.settings.items()
        if name == "group.id" and of.startswith(prefix)
    }
    for event in events:
        if is_of_zookeeper(event):
            group = groups.get(event.member or "", event.group)
            if group is not None:
                yield event if group == event.group else replace(event, group=group)


def _place(source: str) -> str:
    place, colon, line = source.rpartition(":")
    return place if colon and line.isdecimal() and " at " not in place else source
