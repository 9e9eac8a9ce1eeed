"""Which memory of the store is that of the cluster at hand.

A cluster is known by its id and by what it was seen to be: the addresses of its brokers, and the ids of its
topics. Where they disagree, it is another cluster that says that it has the same id (or the same one, made
anew): both are kept apart, and nothing that is remembered of the one is used for, or overwritten by, the
other. A repair that takes offsets from earlier surveys rests on that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kelpie.client.nodes import Nodes
from kelpie.model.time import Instant
from kelpie.model.words import first_of
from kelpie.observations import Observations
from kelpie.observations.identity import saw_same_cluster
from kelpie.store import Store, known_as

_MOST_ADDRESSES = 3


class Memory(NamedTuple):
    """What is remembered of a cluster, and under which name."""

    name: str
    rows: Observations


@dataclass(frozen=True, slots=True)
class Recollection:
    """What the store holds of the cluster that answers here; `settled` when it has been surveyed."""

    store: Store
    cluster_id: str
    """Empty for Kafka before 0.10.1, which has none."""
    addresses: tuple[str, ...]
    """Those that the user gave, and those that brokers advertise."""
    now: Instant
    by_address: Memory | None
    """Of the cluster that was seen at these addresses. None: one with this id was seen elsewhere."""
    by_group: bool = False
    """Committed offsets are `group_offsets`, one row for each group and survey."""

    @classmethod
    def of(cls, nodes: Nodes, store: Store, now: Instant, *, by_group: bool = False) -> "Recollection":
        cluster_id, addresses = known_as(nodes.cluster_id or ""), tuple(addresses_of(nodes))
        name = store.identify(cluster_id, addresses)
        memory = Memory(name, _recalled(store, name, now, by_group)) if name is not None else None
        return cls(store, cluster_id, addresses, now, memory, by_group)

    @property
    def rows(self) -> Observations:
        """What may be used to ask the cluster, before it is known which one it is."""
        return self.by_address.rows if self.by_address is not None else Observations()

    def settled(self, seen: Observations) -> Memory:
        """By all that a survey saw of it. What is kept apart is told in the words of the store."""
        same = saw_same_cluster(self.rows, seen)
        if self.by_address is not None and same is not False:
            return self.by_address
        known = self.store.names_of(self.cluster_id)
        for name in known:
            rows = _recalled(self.store, name, self.now, self.by_group)
            if saw_same_cluster(rows, seen):
                return Memory(name, rows)
        name = self.store.another_name(self.cluster_id)
        self.store.words.append(self._told(known, name, by_topics=same is False))
        return Memory(name, Observations())

    def _told(self, known: Iterable[str], name: str, *, by_topics: bool) -> str:
        before = sorted(address for each in known for address in self.store.addresses_of(each))
        where = first_of(before, _MOST_ADDRESSES) or "unknown addresses"
        differs = "Its topics have other ids" if by_topics else "None of its addresses is known"
        return (
            f"The cluster at {first_of(self.addresses, _MOST_ADDRESSES)} says that its id is "
            f"{self.cluster_id}, as the one at {where} did. {differs}: it counts as another cluster (or the "
            f"same one, made anew) and is kept apart as {name}. Nothing that earlier surveys saw is used."
        )


def _recalled(store: Store, name: str, now: Instant, by_group: bool) -> Observations:
    return store.recall_by_group(name, now) if by_group else store.recall(name, now)


def addresses_of(nodes: Nodes) -> list[str]:
    """The addresses that the user gave, and those that the brokers advertise."""
    announced = [broker.address for broker in nodes.brokers.values()]
    return [str(address) for address in dict.fromkeys([*nodes.settings.bootstrap, *announced])]
