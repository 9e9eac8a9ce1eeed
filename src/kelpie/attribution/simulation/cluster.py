"""Three brokers, a store, groups and consumers; and what can happen to them."""

from kelpie.attribution.addresses import ClientAddress
from kelpie.attribution.plan import Plan, Removal
from kelpie.attribution.simulation.broker import SimulatedBroker
from kelpie.attribution.simulation.consumer import ConsumerKind, SimulatedConsumer
from kelpie.attribution.simulation.group import SimulatedGroup
from kelpie.attribution.simulation.samples import Samples
from kelpie.attribution.store import MemoryStore
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.simulation.agenda import Agenda, Chance

START: Instant = 1_000_000_000
_TICK_MS, _TICK_AT_REST_MS = 1_000, 10_000
REST_MS = 780_000
"""Longer than hints and leaked mappings live."""


class SimulatedCluster:
    def __init__(self, plan: type[Plan], chance: Chance, failed_share: float = 0.0) -> None:
        self.chance = chance
        self.agenda = Agenda(START)
        self.store = MemoryStore()
        self.samples = Samples()
        self.brokers = {
            number: SimulatedBroker(
                number,
                plan,
                store=self.store,
                samples=self.samples,
                agenda=self.agenda,
                chance=chance,
                failed_share=failed_share,
            )
            for number in (1, 2, 3)
        }
        self.partitions = [TopicPartition("orders", number) for number in range(4)]
        self.leaders = dict.fromkeys(self.partitions, 1)
        """All on broker 1 at first: a partition that moves then makes a new connection."""
        self.groups: dict[str, SimulatedGroup] = {}
        self.consumers: list[SimulatedConsumer] = []
        self.is_at_rest = False
        self.idle_close_ms: float | None = None
        """When consumers close the connection on which they asked for their coordinator. None: never."""
        self._next_connection = 0
        self.agenda.after(_TICK_MS, self._tick)

    def group(self, name: str, coordinator: int = 2, partitions: list[TopicPartition] | None = None) -> None:
        self.groups[name] = SimulatedGroup(self, name, coordinator, partitions or self.partitions)

    def consumer(
        self,
        group: str,
        client: ClientAddress,
        kind: ConsumerKind = ConsumerKind.SUBSCRIBES,
        *,
        partitions: tuple[TopicPartition, ...] = (),
        finder: int | None = None,
        every_ms: tuple[float, float] = (2_000, 5_000),
    ) -> SimulatedConsumer:
        """A new process. With `finder`, it asks this broker for its coordinator, if the broker is up."""
        consumer = SimulatedConsumer(
            self, group, client, kind, partitions=partitions, finder=finder, every_ms=every_ms
        )
        self.consumers.append(consumer)
        consumer.start()
        return consumer

    def connect(self, broker: int) -> int:
        self._next_connection += 1
        self.brokers[broker].connections[self._next_connection] = None
        return self._next_connection

    def any_broker(self, but: int | None = None) -> int | None:
        up = [number for number, broker in self.brokers.items() if self.serves(number) and number != but]
        return up[self.chance.randrange(0, len(up))] if up else None

    def serves(self, broker: int) -> bool:
        return self.brokers[broker].is_up and not self.brokers[broker].is_paused

    def move(self, partition: TopicPartition, to: int | None = None) -> None:
        """To another broker that is up; nothing happens if there is none."""
        target = to if to is not None and self.serves(to) else self.any_broker(self.leaders[partition])
        if target is not None:
            self.leaders[partition] = target

    def stop_broker(self, number: int, down_ms: float) -> None:
        """A clean restart. Its coordinator expires all sessions while it stops, as the document tells."""
        if not self.serves(number):
            return
        broker, now = self.brokers[number], self.agenda.now
        broker.send(broker.plan.shutting_down(now))
        for group in self.groups.values():
            if group.coordinator == number:
                for member_id, member in group.members.items():
                    expired = (group.name, member_id, member.client, Removal.EXPIRED, now)
                    broker.send(broker.plan.member_removed(*expired))
        broker.stop()
        self._moves_away(number, (500, 3_000))
        self.agenda.after(down_ms, broker.start)

    def kill_broker(self, number: int, down_ms: float) -> None:
        if not self.brokers[number].is_up:
            return
        self.brokers[number].kill()
        self._moves_away(number, (3_000, 8_000))
        self.agenda.after(down_ms, self.brokers[number].start)

    def pause_broker(self, number: int, pause_ms: float) -> None:
        """The broker stops for a while and others take over. Awake again, it finds all sessions expired."""
        if not self.serves(number):
            return
        broker = self.brokers[number]
        broker.is_paused = True
        members = {
            name: dict(group.members) for name, group in self.groups.items() if group.coordinator == number
        }
        self._moves_away(number, (1_000, 5_000))
        self.agenda.after(pause_ms, self._wake_broker, broker, broker.plan, members)

    def move_group(self, name: str, to: int) -> None:
        """A coordinator gives a group up, and another loads it."""
        group = self.groups[name]
        if group.coordinator is None or not self.serves(to) or group.coordinator == to:
            return
        broker = self.brokers[group.coordinator]
        broker.send(broker.plan.group_unloaded(name, self.agenda.now))
        group.lose_coordinator()
        self.agenda.after(self.chance.uniform(50, 1_000), group.load, to)

    def rest(self) -> None:
        """No more fetches; consumers stay members. What is left over after this has leaked."""
        self.is_at_rest = True
        self.agenda.run(self.agenda.now + REST_MS)

    def _tick(self) -> None:
        for broker in self.brokers.values():
            broker.tick()
        self.agenda.after(_TICK_AT_REST_MS if self.is_at_rest else _TICK_MS, self._tick)

    def _moves_away(self, number: int, delay_ms: tuple[float, float]) -> None:
        for partition, leader in self.leaders.items():
            if leader == number:
                self.agenda.after(self.chance.uniform(0, delay_ms[1]), self.move, partition)
        for group in self.groups.values():
            if group.coordinator == number:
                group.lose_coordinator()
                self.agenda.after(self.chance.uniform(*delay_ms), group.load, None)

    def _wake_broker(
        self, broker: SimulatedBroker, plan: Plan, members: dict[str, dict[str, SimulatedConsumer]]
    ) -> None:
        if broker.plan is not plan or not broker.is_up:
            return
        broker.is_paused = False
        now = self.agenda.now
        for name, by_id in members.items():
            for member_id, member in by_id.items():
                broker.send(plan.member_removed(name, member_id, member.client, Removal.EXPIRED, now))
            broker.send(plan.group_unloaded(name, now))
