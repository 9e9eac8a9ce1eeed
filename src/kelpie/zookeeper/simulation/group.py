"""A group of ZooKeeper consumers, its topics, brokers and ZooKeeper, on the virtual clock."""

from dataclasses import dataclass

from kelpie.model.names import TopicPartition
from kelpie.simulation.agenda import Agenda, Chance
from kelpie.zookeeper.assignment import consumer_of
from kelpie.zookeeper.config import Behaviour, Subscription, ZookeeperConsumerConfig
from kelpie.zookeeper.nodes import BROKERS, GroupPaths, topic_path
from kelpie.zookeeper.requests import CreateEphemeral, Delete, Put
from kelpie.zookeeper.simulation.member import SimulatedMember
from kelpie.zookeeper.simulation.server import Latency, SimulatedZookeeper

GROUP = "group"
START = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What a group is made of, and its settings."""

    members: int = 4
    threads: int = 1
    partitions: int = 8
    topics: int = 1
    retries: int = 4
    backoff_ms: int = 2_000
    session_timeout_ms: int = 6_000
    behaviour: Behaviour = Behaviour.FAITHFUL
    tick_ms: int = 2_000
    """tickTime of ZooKeeper."""
    auto_commit_interval_ms: int = 60_000

    @property
    def topic_names(self) -> tuple[str, ...]:
        return tuple(f"topic-{number}" for number in range(self.topics))


class SimulatedGroup:
    def __init__(self, settings: GroupSettings, chance: Chance, latency: Latency | None = None) -> None:
        self.settings = settings
        self.chance = chance
        self.agenda = Agenda(START)
        self.server = SimulatedZookeeper(self.agenda, chance, tick_ms=settings.tick_ms, latency=latency)
        self.paths = GroupPaths(GROUP)
        self.members: list[SimulatedMember] = []
        """All that were ever started."""
        self.kafka_session = self.server.tree.open_session()
        self.add_broker(0)
        for topic in settings.topic_names:
            self.set_partitions(topic, settings.partitions)

    def config(self, behaviour: Behaviour | None = None) -> ZookeeperConsumerConfig:
        settings = self.settings
        return ZookeeperConsumerConfig(
            group_id=GROUP,
            subscription=Subscription(dict.fromkeys(settings.topic_names, settings.threads)),
            behaviour=behaviour or settings.behaviour,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_max_retries=settings.retries,
            rebalance_backoff_ms=settings.backoff_ms,
            auto_commit_interval_ms=settings.auto_commit_interval_ms,
        )

    def new_member(
        self,
        *,
        behaviour: Behaviour | None = None,
        ignores_failures: bool = False,
        consumer_id: str | None = None,
    ) -> SimulatedMember:
        """A process on a host of its own, so that its name may come before or behind all others."""
        if consumer_id is None:
            host = self.chance.randrange(0, 1 << 32)
            consumer_id = f"{GROUP}_host-{host:08x}-{self.agenda.now}-{len(self.members):08x}"
        config = self.config(behaviour)
        member = SimulatedMember(
            self.server, config, consumer_id, self.chance, ignores_failures=ignores_failures
        )
        self.members.append(member)
        return member

    # Kafka and ZooKeeper.

    def add_broker(self, number: int) -> None:
        value = f'{{"jmx_port":-1,"host":"broker-{number}","version":1,"port":9092}}'
        self.server.change(self.kafka_session, CreateEphemeral(f"{BROKERS}/{number}", value.encode()))

    def remove_broker(self, number: int) -> None:
        self.server.change(self.kafka_session, Delete(f"{BROKERS}/{number}"))

    def set_partitions(self, topic: str, number: int) -> None:
        partitions = ",".join(f'"{partition}":[0]' for partition in range(number))
        value = f'{{"version":1,"partitions":{{{partitions}}}}}'
        self.server.change(self.kafka_session, Put(topic_path(topic), value.encode()))

    def pause_zookeeper(self, for_ms: float) -> None:
        """Clients notice the silence after two thirds of their session."""
        self.server.pause()
        for member in self.members:
            self.agenda.after(member.config.session_timeout_ms * 2 / 3, self._notice_silence, member)
        self.agenda.after(for_ms, self.server.resume)

    def _notice_silence(self, member: SimulatedMember) -> None:
        if self.server.is_paused:
            member.lose_connection()

    # What can be seen.

    @property
    def living(self) -> list[SimulatedMember]:
        return [member for member in self.members if member.is_alive]

    @property
    def is_rebalancing(self) -> bool:
        return any(member.machine.is_rebalancing for member in self.living if not member.is_stopped)

    @property
    def has_dead_session(self) -> bool:
        """Whether ZooKeeper has not noticed yet that a member was killed."""
        return any(member.has_live_session for member in self.members if not member.is_alive)

    def partitions(self) -> set[TopicPartition]:
        return {
            TopicPartition(topic, partition)
            for topic in self.settings.topic_names
            for partition in range(self.settings.partitions)
        }

    def owners(self) -> dict[TopicPartition, str]:
        """The consumer that the owner node of each partition names."""
        owners: dict[TopicPartition, str] = {}
        for partition in self.partitions():
            node = self.server.tree.get(self.paths.owner(partition))
            if node is not None:
                owners[partition] = consumer_of(node.value.decode())
        return owners

    def readers(self) -> dict[TopicPartition, list[SimulatedMember]]:
        """The living members that read each partition, and hand its records to an application."""
        readers: dict[TopicPartition, list[SimulatedMember]] = {}
        for member in self.living:
            if not member.is_stopped and not member.is_zombie:
                for partition in member.reading:
                    readers.setdefault(partition, []).append(member)
        return readers

    def unread(self) -> set[TopicPartition]:
        return self.partitions() - self.readers().keys()
