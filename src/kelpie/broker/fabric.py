"""The cluster without input or output: brokers, the controller, and which of them reach each other.

The lab drives it with sockets and a real clock, a simulation with a virtual one. A new image or
replication that follows from a request or a fault is complete before the call returns. So a driver only
delivers requests, carries answers, and calls `tick` when a deadline has come.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelpie.broker import handlers
from kelpie.broker.broker import Broker, BrokerSet
from kelpie.broker.call import Call
from kelpie.broker.controller import Controller
from kelpie.broker.description import describe
from kelpie.broker.image import NO_LEADER, Endpoint, PartitionImage
from kelpie.broker.personas import Persona, persona
from kelpie.broker.replication import Replication
from kelpie.broker.settings import BrokerSettings
from kelpie.broker.shard_host import ShardHost
from kelpie.broker.timers import Timers
from kelpie.broker.upkeep import Upkeep
from kelpie.coordinator.outcome import CoordinatorRecord, Outcome
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    brokers: tuple[Endpoint, ...]
    persona: str = "4.3"
    settings: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str = ""


class Fabric:
    def __init__(self, spec: ClusterSpec, *, now: Instant, new_id: Callable[[], str]) -> None:
        if not spec.brokers:
            raise ValueError("a cluster has at least one broker")
        self.persona: Persona = persona(spec.persona)
        self.new_id = new_id
        self.zookeeper_offsets: dict[tuple[str, TopicPartition], tuple[int, str]] = {}
        self.controller = Controller(
            spec.brokers,
            spec.cluster_id or "kelpie-lab",
            BrokerSettings(spec.settings, self.persona.settings),
            persona=self.persona,
            new_topic_id=lambda: bytes.fromhex(new_id().replace("-", "")),
        )
        image = self.controller.image
        brokers = {
            endpoint.node_id: Broker(
                endpoint.node_id,
                BrokerSettings(spec.settings, self.persona.settings),
                self.persona,
                image,
                _Reach(self, endpoint.node_id),
            )
            for endpoint in spec.brokers
        }
        self._brokers = BrokerSet(brokers)
        self._crashed: set[int] = set()
        """Killed, and not registered since."""
        self._fresh: set[int] = set()
        """Started, and not registered since."""
        self.replication = Replication(self._brokers, self.controller, self.publish)
        self.timers = Timers()
        Upkeep(self._brokers, self.replication, self.timers, now)

    def describe(self) -> dict[str, object]:
        """Plain data for people and for the control API."""
        return describe(self.controller.image, self.persona, self._brokers)

    # Driving

    def handle(self, node_id: int, call: Call, now: Instant) -> None:
        """A request reached a broker. The answer comes through the call."""
        if node_id not in self._brokers.alive:
            call.refuse()
            return
        handlers.handle(self._brokers[node_id], call, now)
        self.replication.settle(now)

    def tick(self, now: Instant) -> None:
        """Runs what is due."""
        self.timers.run_due(now)
        for node_id in sorted(self._brokers.alive):
            self._brokers[node_id].timers.run_due(now)
        self.replication.settle(now)

    def next_deadline(self) -> Instant | None:
        deadlines = [self.timers.next_deadline()]
        deadlines += [self._brokers[node_id].timers.next_deadline() for node_id in self._brokers.alive]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # Brokers

    def is_alive(self, node_id: int) -> bool:
        return node_id in self._brokers.alive

    def broker(self, node_id: int) -> Broker:
        """Raises KeyError for a node that does not exist."""
        return self._brokers[node_id]

    def connected(self, *nodes: int) -> bool:
        """Whether all of them reach the controller, and so each other."""
        return all(map(self._brokers.reaches_controller, nodes))

    @property
    def brokers(self) -> Mapping[int, Broker]:
        return self._brokers.by_id

    # What happens to brokers

    def kill(self, node_id: int, now: Instant) -> None:
        """It dies without a controlled shutdown; the controller notices when its session has run out."""
        if node_id in self._brokers.alive:
            self.replication.review(now)
            self._crashed.add(node_id)
            self._drop(node_id)
            self._expire_later(node_id, now)

    def stop(self, node_id: int, now: Instant) -> None:
        """A controlled shutdown: its partitions have new leaders before it goes."""
        if node_id in self._brokers.alive:
            traffic = self._brokers[node_id].traffic
            if traffic is not None:
                traffic.shutting_down(now)
            self.controller.broker_lost(node_id)
            self.publish(now)
            self._drop(node_id)

    def start(self, node_id: int, now: Instant) -> None:
        """It comes back with the logs that it had."""
        if node_id in self._brokers.alive:
            return
        self._brokers.alive.add(node_id)
        self._fresh.add(node_id)
        self._register(node_id, now)

    def isolate(self, node_id: int, now: Instant) -> None:
        """Controller and peers cannot be reached from it, nor it from them; clients still reach it."""
        self.replication.review(now)
        self._brokers.isolated.add(node_id)
        self._expire_later(node_id, now)

    def rejoin(self, node_id: int, now: Instant) -> None:
        self._brokers.isolated.discard(node_id)
        self._register(node_id, now)

    def freeze_metadata(self, node_id: int) -> None:
        """It goes on with the image that it has."""
        self._brokers.frozen.add(node_id)

    def thaw_metadata(self, node_id: int, now: Instant) -> None:
        self._brokers.frozen.discard(node_id)
        self.publish(now)

    def lag(self, node_id: int, partition: TopicPartition | None = None) -> None:
        """As a follower it fetches nothing any more, of one partition or of all."""
        self.replication.stall(node_id, partition)

    def catch_up(self, node_id: int, partition: TopicPartition | None, now: Instant) -> None:
        self.replication.resume(node_id, partition)
        self.replication.settle(now)

    # What happens to partitions

    def shrink_isr(self, partition: TopicPartition, isr: Sequence[int], now: Instant) -> None:
        """Replicas outside `isr` fall behind, and so out of it. Catching up brings them back.

        Raises Declined if no replica of `isr` is in sync now.
        """
        state = self._known(partition)
        for node in state.replicas:
            if node not in isr:
                self.replication.stall(node, partition)
        self.controller.shrink_isr(partition, isr)
        self.publish(now)

    def make_leaderless(self, partition: TopicPartition, now: Instant) -> None:
        """No replica leads it, though brokers live, as after the loss of disks. An election ends that."""
        self._known(partition)
        self.controller.make_leaderless(partition)
        self.publish(now)

    def elect(self, partition: TopicPartition, now: Instant, *, unclean: bool) -> None:
        """Raises Declined if no election is needed, or no replica can be elected."""
        state = self._known(partition)
        if state.leader == NO_LEADER and not unclean:
            self.controller.give_leader(partition)
        else:
            self.controller.elect(partition, unclean=unclean)
        self.publish(now)

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int,
        now: Instant,
        *,
        config: Mapping[str, str] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Raises Declined."""
        self.controller.create_topic(name, partitions, replication, config or {}, assignment)
        self.publish(now)

    # What happens to coordinators

    def slow_load(self, delay_ms: int, partition: int | None = None) -> None:
        """Coordinators take this long to load, from now on: one partition of the offsets topic, or all."""
        for broker in self._brokers.by_id.values():
            if delay_ms > 0:
                broker.load_delays[partition] = delay_ms
            else:
                broker.load_delays.pop(partition, None)

    def lose_offsets(self, group: str, now: Instant) -> None:
        """Every committed offset of the group is gone, as after an unclean election: tombstones say so."""
        for _, host in self._coordinators(group):
            known = host.shard.offsets_of(group, None, False)
            keys = [
                OffsetCommitKey(group=group, topic=topic.name, partition=part.partition_index)
                for topic in known.topics
                for part in topic.partitions
            ]
            host.carry_out(
                Outcome(tuple(CoordinatorRecord(offsets_topic.encode_key(key), None) for key in keys)), now
            )
        self.replication.settle(now)

    def expire_offsets(self, group: str | None, now: Instant) -> None:
        """The retention of committed offsets is over, of one group or all, where they may expire at all."""
        for broker, host in self._coordinators(group):
            retention = broker.settings.number("offsets.retention.minutes") * 60_000
            outcome = host.shard.expire(now + retention + 1)
            records = tuple(
                record for record in outcome.records if group is None or _group_of(record) == group
            )
            host.carry_out(replace(outcome, records=records, timers=()), now)
        self.replication.settle(now)

    def _coordinators(self, group: str | None) -> list[tuple[Broker, ShardHost]]:
        """The shard of a group, or all shards."""
        return [
            (broker, host)
            for broker in self._brokers.living()
            for index, host in list(broker.groups.hosts.items())
            if host.active and (group is None or index == broker.groups.partition_of(group))
        ]

    # Inside

    def publish(self, now: Instant, restarted: int | None = None) -> None:
        """Carries the true image to every broker that can be reached.

        One that restarts takes the image there is, also when its view is frozen from then on.
        """
        while True:
            image = self.controller.image
            for node_id in sorted(self._brokers.alive - self._brokers.isolated):
                broker = self._brokers[node_id]
                newer = broker.image.version < image.version and node_id not in self._brokers.frozen
                if newer or node_id == restarted:
                    broker.apply(image, now)
            restarted = None
            if self.controller.image is image:
                break
        self.replication.settle(now)

    def _register(self, node_id: int, now: Instant) -> None:
        """A broker reports to the controller. One that cannot after a start knows and leads nothing."""
        if not self._brokers.reaches_controller(node_id):
            return
        self.timers.cancel(("session", node_id))
        fresh = node_id in self._fresh
        if fresh:
            self._fresh.discard(node_id)
            self.controller.broker_lost(node_id)  # An old session, should it still be there, ends now.
        self.controller.broker_returned(node_id, crashed=fresh and node_id in self._crashed)
        self.replication.everywhere()
        if fresh:
            self._crashed.discard(node_id)
            self._brokers[node_id].image = self.controller.image
        self.publish(now, restarted=node_id if fresh else None)

    def _drop(self, node_id: int) -> None:
        self._brokers.alive.discard(node_id)
        self._brokers[node_id].died()

    def _expire_later(self, node_id: int, now: Instant) -> None:
        """No heartbeat comes any more. A session that runs out already is not prolonged."""

        def expire(at: Instant) -> None:
            self.controller.broker_lost(node_id)
            self.publish(at)

        if node_id in self.controller.image.alive and not self.timers.is_set(("session", node_id)):
            timeout = self._brokers[node_id].settings.number("broker.session.timeout.ms")
            self.timers.set(("session", node_id), now + timeout, expire)

    def _known(self, partition: TopicPartition) -> PartitionImage:
        state = self.controller.image.partition(partition)
        if state is None:
            raise ValueError(f"there is no partition {partition}")
        return state


def _group_of(record: CoordinatorRecord) -> str:
    _, key = offsets_topic.decode_key(record.key)
    return str(getattr(key, "group", None) or getattr(key, "group_id", ""))


@dataclass(frozen=True, slots=True)
class _Reach:
    """One broker's links: what it reaches of the fabric at this moment."""

    _fabric: Fabric
    _node_id: int

    @property
    def zookeeper_offsets(self) -> dict[tuple[str, TopicPartition], tuple[int, str]]:
        return self._fabric.zookeeper_offsets

    def controller(self) -> Controller | None:
        return self._fabric.controller if self._fabric.connected(self._node_id) else None

    def publish(self, now: Instant) -> None:
        self._fabric.publish(now)

    def appended(self, partition: TopicPartition) -> None:
        self._fabric.replication.appended(partition)

    def peer(self, node_id: int) -> Broker | None:
        return self._fabric.broker(node_id) if self._fabric.connected(self._node_id, node_id) else None

    def new_id(self) -> str:
        return self._fabric.new_id()
