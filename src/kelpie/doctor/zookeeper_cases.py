"""Cases of groups that ZooKeeper keeps. Kafka may keep a group of the same name: that is another case."""

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
        self._events = grouped(
            (row for row in observations.events if row.group is not None and is_of_zookeeper(row)), group
        )
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


def _place(source: str) -> str:
    place, colon, line = source.rpartition(":")
    return place if colon and line.isdecimal() and " at " not in place else source
