"""Followers fetch from leaders, and leaders check which followers keep up.

A follower fetches as soon as there is something new, if it lives, follows the leader's epoch, reaches the
leader and does not lag on purpose. So a partition at rest has the same log everywhere, and one that is not
names its reason. The ISR follows from that as in Kafka: a replica that has been behind for
replica.lag.time.max.ms leaves it, one that fetches up to the end joins it, and the controller's image is
published once for all partitions.
"""

from collections.abc import Callable

from kelpie.broker.broker import Broker, BrokerSet
from kelpie.broker.controller import Controller
from kelpie.broker.image import PartitionImage
from kelpie.broker.replica import Replica
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

Stall = tuple[int, TopicPartition | None]
"""A broker, and what it does not fetch any more: one partition, or everything."""


class Replication:
    def __init__(
        self, brokers: BrokerSet, controller: Controller, publish: Callable[[Instant], None]
    ) -> None:
        self._brokers = brokers
        self._controller = controller
        self._publish = publish
        self._waiting: dict[TopicPartition, None] = {}
        """Partitions whose followers have something to fetch, in the order in which it came."""
        self._stalls: set[Stall] = set()
        self._unseen: set[Stall] = set()
        """Stalls that began since the last review: up to then their brokers kept up."""
        self._at_work = False

    def appended(self, partition: TopicPartition) -> None:
        """There is something new for the followers of a partition."""
        self._waiting[partition] = None

    def everywhere(self) -> None:
        """A broker is back and may have missed records."""
        for topic in self._controller.image.topics.values():
            for index in range(len(topic.partitions)):
                self._waiting[TopicPartition(topic.name, index)] = None

    def stall(self, node_id: int, partition: TopicPartition | None) -> None:
        stall = (node_id, partition)
        if stall not in self._stalls:
            self._stalls.add(stall)
            self._unseen.add(stall)

    def resume(self, node_id: int, partition: TopicPartition | None) -> None:
        self._stalls.discard((node_id, partition))
        self._unseen.discard((node_id, partition))
        self.everywhere()

    def settle(self, now: Instant) -> None:
        """Lets followers fetch until nothing is new. A call during another one returns at once."""
        if self._at_work or not self._waiting:
            return
        self._at_work = True
        try:
            while self._waiting:
                todo, self._waiting = self._waiting, {}
                changed = [self._replicate(partition, now) for partition in todo]
                if any(changed):
                    self._publish(now)
        finally:
            self._at_work = False

    def review(self, now: Instant) -> None:
        """Every leader checks its followers, also where nothing has been written for a while."""
        changed = False
        for broker in self._brokers.living():
            for partition, replica in list(broker.replicas.items()):
                if replica.leads and replica.followers:
                    fetching = self._fetching(partition, replica)
                    for node_id in replica.followers:
                        if node_id in fetching or self._was_fetching(node_id, partition):
                            replica.still_fetches(node_id, now)
                    changed |= self._review(broker, replica, fetching, now)
        self._unseen.clear()
        if changed:
            self._publish(now)

    def _replicate(self, partition: TopicPartition, now: Instant) -> bool:
        """Each follower that can fetches; the leader moves its high watermark. Says if the ISR changed."""
        state = self._controller.image.partition(partition)
        if state is None or not self._brokers.reaches_controller(state.leader) or len(state.replicas) == 1:
            return False
        leader = self._brokers[state.leader]
        replica = leader.replicas.get(partition)
        if replica is None or not replica.leads or replica.leader_epoch != state.leader_epoch:
            return False
        for node_id in replica.followers:
            if self._was_fetching(node_id, partition):
                replica.still_fetches(node_id, now)
        fetching = self._fetching(partition, replica)
        config = leader.log_config(partition)
        for follower in fetching.values():
            follower.pull(replica, config, now)
        if replica.advance(now):
            leader.fetching.arrived(partition, now)
            for follower in fetching.values():
                follower.pull(replica, config, now)
        leader.deletions.followers_fetched(partition)
        return self._review(leader, replica, fetching, now)

    def _fetching(self, partition: TopicPartition, leader: Replica) -> dict[int, Replica]:
        """The replicas that fetch from this leader."""
        state = leader.state
        assert state is not None
        if not self._brokers.reaches_controller(state.leader):
            return {}
        followers: dict[int, Replica] = {}
        for node_id in state.replicas:
            replica = self._follower(node_id, partition, state)
            if replica is not None:
                followers[node_id] = replica
        return followers

    def _follower(self, node_id: int, partition: TopicPartition, state: PartitionImage) -> Replica | None:
        if node_id == state.leader or not self._brokers.reaches_controller(node_id):
            return None
        if (node_id, None) in self._stalls or (node_id, partition) in self._stalls:
            return None
        replica = self._brokers[node_id].replicas.get(partition)
        if replica is None or replica.leader_epoch != state.leader_epoch or replica.leads:
            return None
        return replica

    def _was_fetching(self, node_id: int, partition: TopicPartition) -> bool:
        """Whether it stopped only just now, so that its time begins to run."""
        if not self._unseen:
            return False
        began = {(node_id, None), (node_id, partition)} & self._stalls
        return bool(began) and began <= self._unseen

    def _review(self, leader: Broker, replica: Replica, fetching: dict[int, Replica], now: Instant) -> bool:
        """The leader reports a changed ISR to the controller. Returns whether it changed."""
        assert replica.state is not None
        if not self._brokers.reaches_controller(leader.node_id):
            return False
        limit = leader.settings.number("replica.lag.time.max.ms")
        members = replica.in_sync(now, limit, fetching)
        if members == replica.state.isr:
            return False
        members = tuple(node for node in members if node in self._controller.image.alive)
        if not self._controller.alter_isr(replica.partition, leader.node_id, replica.leader_epoch, members):
            return False
        state = self._controller.image.partition(replica.partition)
        if state is not None and state.leader_epoch == replica.leader_epoch:
            replica.apply(state, now)  # The leader gets the controller's answer, even if no image reaches it.
        return True
