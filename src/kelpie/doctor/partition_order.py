"""Values of partitions that many groups name, each in an order of its own.

Brokers tell the partitions of a group in another order than that in which it commits them. Thousands of
groups share these names as one object: how to order them is worked out once for each object.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from kelpie.cluster.view import ClusterView
from kelpie.doctor.group_positions import Run, has_errors, topic_ids
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed
from kelpie.observations.group_offsets import GroupCommits

T = TypeVar("T")
_Names = tuple[TopicPartition, ...]
_Order = Callable[[Any], Any] | None
"""None: these are other partitions."""


class PartitionOrder:
    """Partitions in the order in which a broker told them."""

    def __init__(self, names: _Names, topic_ids: tuple[str, ...]) -> None:
        """`topic_ids`: of the topics that are there now."""
        self.names, self.topic_ids = names, topic_ids
        self._orders: dict[int, tuple[_Names, _Order]] = {}
        """By identity, with the object: to compare names for each group takes longer than all else here."""
        self._commit_orders: dict[tuple[int, int], tuple[_Names, tuple[str, ...], _Order]] = {}
        """Names and ids of topics, likewise. None: these topics are not the present ones, either."""

    @classmethod
    def of(cls, cluster: ClusterView, names: _Names) -> "PartitionOrder":
        return cluster.once_by_identity(_order_in, names)

    def values(self, names: _Names, values: tuple[T, ...]) -> tuple[T, ...] | None:
        """Values for these partitions, in the order of `self.names`. None: these are other partitions."""
        if names is self.names:
            return values
        order = self._order(names)
        return None if order is None else order(values)

    def committed(self, run: Run[Commit]) -> tuple[int, ...] | None:
        """Its offsets. None: they are of other partitions, or of topics that are gone."""
        if not isinstance(run, GroupCommits):
            order = self._commit_order(run.names, topic_ids(run))
        else:
            names, ids = run.names, run.topic_ids
            known = self._commit_orders.get((id(names), id(ids)))
            if known is None:
                known = names, ids, self._commit_order(names, ids)
                self._commit_orders[id(names), id(ids)] = known
            order = known[2]
        return None if order is None else order(run.offsets)

    def rest_began(
        self, offsets: tuple[int, ...], commits: Sequence[Run[Commit]], looks: Sequence[Run[Committed]]
    ) -> Instant | None:
        """Since when it is known that a group was at these offsets, and never elsewhere. Runs are by time.

        None: it was elsewhere, or that does not show at a glance.
        """
        names = self.names
        for look in looks:
            stood_at = look.offsets if look.names is names else self.values(look.names, look.offsets)
            if stood_at != offsets or has_errors(look):
                return None
        for run in commits:
            if self.committed(run) != offsets:
                return None
        # Those without a time come first.
        oldest_look = looks[0].at if looks else None
        oldest_commit = commits[0].at if commits else oldest_look
        if oldest_look is None or oldest_commit is None:
            return None
        return oldest_look if oldest_look < oldest_commit else oldest_commit

    def _commit_order(self, names: _Names, ids: tuple[str, ...]) -> _Order:
        return self._order(names) if not any(ids) or self.values(names, ids) == self.topic_ids else None

    def _order(self, names: _Names) -> _Order:
        known = self._orders.get(id(names))
        if known is None:
            if names == self.names:  # Rows that came one by one have names of their own: too many to keep.
                return tuple
            known = self._orders[id(names)] = names, self._order_of(names)
        return known[1]

    def _order_of(self, names: _Names) -> _Order:
        places = {name: place for place, name in enumerate(names)}
        if len(places) < len(names) or places.keys() != set(self.names):
            return None
        return itemgetter(*(places[name] for name in self.names))


def _order_in(cluster: ClusterView, names: _Names) -> PartitionOrder:
    return PartitionOrder(names, tuple(cluster.known_topics.id_of(name.topic) for name in names))
