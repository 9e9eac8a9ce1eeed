"""A plan: how brokers keep the mapping from a client's address to its group, and how they read it.

There is one object per broker and life of that broker. The broker calls a method for each event that it sees,
and sends the requests that the method returns to the store, in order. The answers come back as `answered` or
`failed`, in the order of the requests.

- FindCoordinator, JoinGroup and SyncGroup are answered when the store has answered their requests, whether it
  carried them out or not: KoP does so for FindCoordinator. A fetch is answered at once.
- A fetch is counted when its group is known: at once, or when the store has answered.
- A broker that stops cleanly calls `shutting_down`, then `connection_closed` for each connection. A broker
  that is killed calls neither, and the counts that still wait are lost with its other counters.
- The first request of a group that a coordinator does not have in memory is preceded by `group_loaded`, also
  if the group is new. Its epoch grows with every change of coordinator, as a leader epoch does.
"""

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import NamedTuple

from kelpie.attribution.addresses import ClientAddress
from kelpie.attribution.counters import Amount, Counters
from kelpie.attribution.requests import Request, Result
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

Connection = Hashable
"""Whatever tells one connection of a broker from all others, past ones too."""


class Removal(Enum):
    """Why a coordinator removed a member."""

    LEFT = "left"
    EXPIRED = "expired"
    NOT_REJOINED = "not rejoined"
    """It did not join again before the rebalance ended. Kafka and KoP remove it in `onCompleteJoin`."""
    REPLACED = "replaced"
    """A static member came again, under another member id (KIP-345)."""


class AssignedMember(NamedTuple):
    client: ClientAddress
    partitions: frozenset[TopicPartition]


Assignment = Mapping[str, AssignedMember]
"""By member id."""


class Plan:
    """Does nothing at any event. A plan overrides the methods of the events that it needs."""

    name = ""

    def __init__(self, broker: int, life: int, counters: Counters) -> None:
        self.broker = broker
        self.life = life
        """Differs between any two starts of the broker. A start time will do."""
        self.counters = counters

    def coordinator_found(
        self, connection: Connection, client: ClientAddress, group: str, now: Instant
    ) -> list[Request]:
        """FindCoordinator for a group came in. (For transactional ids, no broker calls this.)"""
        return []

    def member_joined(
        self, connection: Connection, client: ClientAddress, member_id: str, group: str, now: Instant
    ) -> list[Request]:
        """JoinGroup came in at the coordinator, and the member has an id."""
        return []

    def assignment_made(self, group: str, assignment: Assignment, now: Instant) -> list[Request]:
        """The leader's SyncGroup came in: all members of the generation with their partitions."""
        return []

    def member_removed(
        self, group: str, member_id: str, client: ClientAddress, reason: Removal, now: Instant
    ) -> list[Request]:
        return []

    def connection_closed(self, connection: Connection, now: Instant) -> list[Request]:
        return []

    def group_loaded(self, group: str, members: Assignment, epoch: int, now: Instant) -> list[Request]:
        """The broker is the group's coordinator from now on."""
        return []

    def group_unloaded(self, group: str, now: Instant) -> list[Request]:
        """The broker is no longer the group's coordinator."""
        return []

    def shutting_down(self, now: Instant) -> list[Request]:
        return []

    def fetched(
        self,
        connection: Connection,
        client: ClientAddress,
        partition: TopicPartition,
        amount: Amount,
        now: Instant,
    ) -> list[Request]:
        """A fetch was answered with messages. Fetches that brought none are not told: KoP ignores them."""
        return []

    def tick(self, now: Instant) -> list[Request]:
        """About a second has passed."""
        return []

    def answered(self, request: Request, result: Result, now: Instant) -> list[Request]:
        return []

    def failed(self, request: Request, now: Instant) -> list[Request]:
        """The store did not answer in time. It may have carried the request out all the same."""
        return []
