"""A group as its coordinator keeps it: just enough of it for the plans to hear what they would hear.

Members join, rebalance, expire and leave. JoinGroup and SyncGroup are answered when the store has answered
what the plan asked of it. A new coordinator has the members of the last finished rebalance from its log, and
gives them new sessions. Heartbeats are not simulated one by one: a member is silent from some time on, or it
is not.
"""

from functools import partial
from typing import TYPE_CHECKING

from kelpie.attribution.plan import AssignedMember, Removal
from kelpie.model.names import TopicPartition

if TYPE_CHECKING:
    from kelpie.attribution.simulation.cluster import SimulatedCluster
    from kelpie.attribution.simulation.consumer import SimulatedConsumer

SESSION_MS = 10_000
HEARTBEAT_MS = 3_000
_REBALANCE_MS = 12_000
_TIMER_LATE_MS = 2_000
"""So late may the coordinator notice that a session has expired."""


class SimulatedGroup:
    def __init__(
        self, cluster: "SimulatedCluster", name: str, coordinator: int, partitions: list[TopicPartition]
    ) -> None:
        self.name = name
        self.coordinator: int | None = None
        self.epoch = 0
        self.members: dict[str, SimulatedConsumer] = {}
        self._cluster = cluster
        self._topic = partitions
        self._assigned: dict[str, frozenset[TopicPartition]] = {}
        self._joined: set[str] = set()
        self._rebalance = 0
        """Its number. Timers of earlier rebalances are void."""
        self._is_rebalancing = False
        self._next_member = 0
        self.load(coordinator)

    def load(self, broker: int | None) -> None:
        """On this broker, or on any."""
        cluster = self._cluster
        target = broker if broker is not None and cluster.serves(broker) else cluster.any_broker()
        if self.coordinator is not None:
            return
        if target is None:
            cluster.agenda.after(1_000, self.load, None)
            return
        self.coordinator = target
        self.epoch += 1
        self.members = {member: self.members[member] for member in self._assigned if member in self.members}
        self._is_rebalancing = False
        members = {
            member_id: AssignedMember(member.client, self._assigned[member_id])
            for member_id, member in self.members.items()
        }
        plan = cluster.brokers[target].plan
        cluster.brokers[target].send(plan.group_loaded(self.name, members, self.epoch, cluster.agenda.now))
        for member_id, member in self.members.items():
            if member.is_silent or member.member_id != member_id:
                cluster.agenda.after(SESSION_MS, self._expire, member_id, member.silence, self.epoch)

    def lose_coordinator(self) -> None:
        self.coordinator = None
        self._rebalance += 1
        for member in list(self.members.values()):
            member.coordinator_lost()

    def join(self, consumer: "SimulatedConsumer", connection: int) -> None:
        """JoinGroup has come. A member that is not known gets a new id."""
        if self.coordinator is None:
            return
        member_id = consumer.member_id
        if member_id is None or member_id not in self.members:
            self._next_member += 1
            member_id = consumer.member_id = f"{consumer.client.client_id}-{self._next_member}"
            self.members[member_id] = consumer
        broker, now = self._cluster.brokers[self.coordinator], self._cluster.agenda.now
        requests = broker.plan.member_joined(connection, consumer.client, member_id, self.name, now)
        self._prepare(but=member_id)
        broker.send(requests, partial(self._has_joined, member_id, self._rebalance))

    def awaits(self, member_id: str) -> bool:
        """A rebalance is under way, and this member has not joined yet."""
        return self._is_rebalancing and member_id not in self._joined

    def leave(self, consumer: "SimulatedConsumer") -> None:
        member_id = consumer.member_id
        if member_id in self.members and self.coordinator is not None:
            self._remove(member_id, Removal.LEFT)
            self._prepare()
        else:
            self.silent(consumer)

    def silent(self, consumer: "SimulatedConsumer") -> None:
        """No heartbeat comes from now on; the last one was up to an interval ago."""
        chance = self._cluster.chance
        if consumer.member_id in self.members:
            since_last = chance.uniform(0, HEARTBEAT_MS)
            delay = SESSION_MS - since_last + chance.uniform(0, _TIMER_LATE_MS)
            self._cluster.agenda.after(delay, self._expire, consumer.member_id, consumer.silence, self.epoch)

    def _expire(self, member_id: str, silence: int, epoch: int) -> None:
        member = self.members.get(member_id)
        if member is None or self.coordinator is None or epoch != self.epoch or member.silence != silence:
            return
        self._remove(member_id, Removal.EXPIRED)
        self._prepare()

    def _remove(self, member_id: str, reason: Removal) -> None:
        member = self.members.pop(member_id)
        self._assigned.pop(member_id, None)
        self._joined.discard(member_id)
        assert self.coordinator is not None
        broker, now = self._cluster.brokers[self.coordinator], self._cluster.agenda.now
        broker.send(broker.plan.member_removed(self.name, member_id, member.client, reason, now))
        if reason is Removal.NOT_REJOINED:  # Its next heartbeat tells it.
            self._cluster.agenda.after(self._cluster.chance.uniform(0, HEARTBEAT_MS), member.heartbeat)

    def _prepare(self, but: str | None = None) -> None:
        """Begin a rebalance, or go on with the one that has begun."""
        agenda, chance = self._cluster.agenda, self._cluster.chance
        if not self._is_rebalancing:
            self._is_rebalancing = True
            self._rebalance += 1
            self._joined = set()
            for member_id, member in self.members.items():
                if member_id != but:
                    agenda.after(chance.uniform(0, HEARTBEAT_MS), member.join_again, member_id)
            agenda.after(_REBALANCE_MS, self._due, self._rebalance)
        elif self._joined.issuperset(self.members):
            agenda.after(chance.uniform(5, 50), self._finish, self._rebalance)

    def _has_joined(self, member_id: str, rebalance: int) -> None:
        if rebalance != self._rebalance or member_id not in self.members:
            return
        self._joined.add(member_id)
        if self._joined.issuperset(self.members):
            self._cluster.agenda.after(self._cluster.chance.uniform(5, 50), self._finish, rebalance)

    def _due(self, rebalance: int) -> None:
        if rebalance != self._rebalance or not self._is_rebalancing or self.coordinator is None:
            return
        for member_id in [member_id for member_id in self.members if member_id not in self._joined]:
            self._remove(member_id, Removal.NOT_REJOINED)
        self._finish(rebalance)

    def _finish(self, rebalance: int) -> None:
        if rebalance != self._rebalance or not self._is_rebalancing or self.coordinator is None:
            return
        if not self._joined.issuperset(self.members):
            return
        self._is_rebalancing = False
        cluster = self._cluster
        ids = sorted(self.members)
        first = cluster.chance.randrange(0, len(ids)) if ids else 0
        parts: dict[str, list[TopicPartition]] = {member_id: [] for member_id in ids}
        for number, partition in enumerate(self._topic if ids else ()):
            parts[ids[(first + number) % len(ids)]].append(partition)
        self._assigned = {member_id: frozenset(assigned) for member_id, assigned in parts.items()}
        assignment = {
            member_id: AssignedMember(self.members[member_id].client, assigned)
            for member_id, assigned in self._assigned.items()
        }
        broker = cluster.brokers[self.coordinator]
        requests = broker.plan.assignment_made(self.name, assignment, cluster.agenda.now)
        receivers = [(self.members[member_id], member_id, tuple(parts[member_id])) for member_id in ids]
        broker.send(requests, partial(self._answer, receivers, rebalance))

    def _answer(
        self, receivers: list[tuple["SimulatedConsumer", str, tuple[TopicPartition, ...]]], rebalance: int
    ) -> None:
        """SyncGroup is answered, unless another rebalance has begun."""
        if rebalance != self._rebalance or self._is_rebalancing:
            return
        for consumer, member_id, partitions in receivers:
            self._cluster.agenda.after(
                self._cluster.chance.uniform(1, 20), consumer.assign, member_id, partitions
            )
