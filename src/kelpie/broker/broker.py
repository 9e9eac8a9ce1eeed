"""One broker without input or output: its image, its replicas, its coordinators, its waiting requests.

`handlers` takes its requests. `apply` takes a new image: the broker begins to lead partitions, to follow
others, and forgets those that it no longer hosts. Nothing here knows a socket or a clock.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from kelpie.broker.controller import Controller
from kelpie.broker.declined import Declined
from kelpie.broker.deletions import Deletions
from kelpie.broker.fetch_service import FetchService
from kelpie.broker.group_service import GroupService
from kelpie.broker.host import Links
from kelpie.broker.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Image, PartitionImage
from kelpie.broker.log import AppendRefusal, LogConfig
from kelpie.broker.personas import Persona
from kelpie.broker.replica import Replica
from kelpie.broker.settings import BrokerSettings
from kelpie.broker.timers import Timers
from kelpie.broker.traffic import Traffic
from kelpie.broker.transaction_service import TransactionService
from kelpie.coordinator.classic.group import find_group
from kelpie.coordinator.notes import Note
from kelpie.coordinator.transactions import MarkerRequest
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

_PREFIX = {OFFSETS_TOPIC: "offsets.topic", TRANSACTIONS_TOPIC: "transaction.state.log"}

LogKeeper = Callable[[int, TopicPartition, Note, Instant], None]
"""Writes a note of a coordinator to a log: broker, partition, note, time."""


class PeerLinks(Links, Protocol):
    """What a broker can reach, other brokers included."""

    def peer(self, node_id: int) -> "Broker | None":
        """Another broker, if it can be reached."""


class Broker:
    def __init__(
        self, node_id: int, settings: BrokerSettings, persona: Persona, image: Image, links: "PeerLinks"
    ) -> None:
        self.node_id = node_id
        self.settings = settings
        self.persona = persona
        self.image = image
        self.links = links
        self.timers = Timers()
        self.replicas: dict[TopicPartition, Replica] = {}
        self.groups = GroupService(self)
        self.transactions = TransactionService(self)
        self.fetching = FetchService(self)
        self.deletions = Deletions(self)
        self.load_delays: dict[int | None, int] = {}
        """Milliseconds that loading a group shard takes, by partition; under None for all others. A fault."""
        self.log_keeper: LogKeeper | None = None
        self.traffic: Traffic | None = None
        """What it counts in this life; None if it counts nothing."""
        self._log_configs: dict[str, tuple[Any, LogConfig]] = {}

    def tell(self, partition: TopicPartition, notes: Iterable[Note], now: Instant) -> None:
        """Writes what the coordinator on this partition did to the broker's log."""
        if self.log_keeper is not None:
            for note in notes:
                self.log_keeper(self.node_id, partition, note, now)
        if self.traffic is not None and partition.topic == OFFSETS_TOPIC:
            host = self.groups.hosts.get(partition.partition)
            if host is None:
                self.traffic.told(notes, lambda _: None, 0, now)
            else:
                state = host.shard.state
                self.traffic.told(notes, lambda group: find_group(state, group), host.epoch, now)

    # The image

    def apply(self, image: Image, now: Instant) -> None:
        """Takes over a newer image. An older one, or the same, changes nothing."""
        if image.version <= self.image.version and image is not self.image:
            return
        self.image = image
        self.settings.dynamic = {
            **image.broker_config.get("", {}),
            **image.broker_config.get(str(self.node_id), {}),
        }
        hosted: set[TopicPartition] = set()
        for topic in image.topics.values():
            for index, state in enumerate(topic.partitions):
                if self.node_id in state.replicas:
                    partition = TopicPartition(topic.name, index)
                    hosted.add(partition)
                    self._host(partition, topic.topic_id, state, now)
        gone = [partition for partition in self.replicas if partition not in hosted]
        for partition in gone:
            known = image.partition(partition) is not None
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self.replicas.pop(partition).forget(code, now)
        self.groups.follow_image(now)
        self.transactions.follow_image(now)
        self.fetching.follow_image(now)
        self.deletions.followers_fetched()

    def _host(self, partition: TopicPartition, topic_id: bytes, state: PartitionImage, now: Instant) -> None:
        replica = self.replicas.get(partition)
        if replica is not None and replica.topic_id != topic_id:
            replica.forget(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, now)
            replica = None
        if replica is None:
            replica = self.replicas[partition] = Replica(
                partition,
                self.node_id,
                topic_id,
                least_in_sync=self._least_in_sync(partition),
                knows_epochs=self.persona.magic >= 2,
            )
        if replica.state != state:
            epoch = replica.leader_epoch
            replica.apply(state, now)
            if replica.leader_epoch != epoch:
                self.links.appended(partition)  # New followers fetch, though no record is new.

    def _least_in_sync(self, partition: TopicPartition) -> Callable[[], int]:
        """What the high watermark waits for."""
        if self.persona.strict_min_isr:
            return lambda: self.log_config(partition).min_insync_replicas
        return lambda: 1

    def died(self) -> None:
        """What was only in memory is gone; the logs lie on disk."""
        self.timers.clear()
        self.traffic = None
        for replica in self.replicas.values():
            replica.resigned()
        self.groups = GroupService(self)
        self.transactions = TransactionService(self)
        self.fetching = FetchService(self)
        self.deletions = Deletions(self)

    # Replicas

    def led(self, partition: TopicPartition) -> Replica | ErrorCode:
        """The replica, if this broker believes that it leads it; else the error for the client."""
        replica = self.replicas.get(partition)
        if replica is None or replica.state is None:
            known = self.image.partition(partition) is not None and self.persona.knows_other_hosts
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return replica if replica.leads else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def refuses_write(self, replica: Replica, *, all_acks: bool = True) -> ErrorCode | None:
        """Why nothing can be written to this replica now."""
        if not replica.leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None if not all_acks or self.enough_in_sync(replica) else ErrorCode.NOT_ENOUGH_REPLICAS

    def enough_in_sync(self, replica: Replica) -> bool:
        """Whether min.insync.replicas is kept. Old releases did not mind if there were never that many."""
        least = self.log_config(replica.partition).min_insync_replicas
        if self.persona.strict_min_isr and replica.state is not None:
            least = min(least, len(replica.state.replicas))
        return replica.enough_in_sync(least)

    def appended(self, replica: Replica, now: Instant) -> None:
        """Something was written to a replica that this broker leads."""
        if replica.advance(now):
            self.fetching.arrived(replica.partition, now)
        self.links.appended(replica.partition)

    def write_marker(
        self,
        marker: MarkerRequest,
        partition: TopicPartition,
        now: Instant,
        *,
        written: Callable[[Instant], None],
        failed: Callable[[], None],
    ) -> None:
        """As a transaction's coordinator: the partition's leader writes the marker, if it can be reached."""
        leader = self.image.leader_of(partition)
        if leader is None:
            written(now) if self.image.partition(partition) is None else failed()
            return
        peer = self if leader.node_id == self.node_id else self.links.peer(leader.node_id)
        if peer is None:
            failed()
        else:
            peer.append_marker(marker, partition, now, written=written, failed=failed)

    def append_marker(
        self,
        marker: MarkerRequest,
        partition: TopicPartition,
        now: Instant,
        *,
        written: Callable[[Instant], None],
        failed: Callable[[], None],
    ) -> None:
        """As the partition's leader: appends the control record. Calls `written` once it is committed."""
        replica = self.led(partition)
        if not isinstance(replica, Replica):
            # Deleted meanwhile: nothing to mark.
            written(now) if replica == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else failed()
            return
        if self.refuses_write(replica) is not None:
            failed()
            return
        appended = replica.log.append_control(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            committed=marker.committed,
            leader_epoch=replica.leader_epoch,
            now=now,
            config=self.log_config(partition),
            transaction_version=marker.transaction_version,
        )
        if isinstance(appended, AppendRefusal):
            # A newer coordinator, or a newer epoch, has ended the transaction already.
            done = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
            written(now) if appended.error_code in done else failed()
            return

        def committed(at: Instant) -> None:
            host = self.groups.hosts.get(partition.partition) if partition.topic == OFFSETS_TOPIC else None
            if host is not None and host.active:
                host.ended(marker.producer_id, committed=marker.committed)
            written(at)

        replica.when_committed(appended.last_offset + 1, committed, lambda code, at: failed(), now)
        self.appended(replica, now)

    def log_config(self, partition: TopicPartition) -> LogConfig:
        topic = self.image.topics.get(partition.topic)
        given = topic.config if topic else {}
        key = (given, self.settings.dynamic)
        held = self._log_configs.get(partition.topic)
        if held is None or held[0][0] is not given or held[0][1] is not self.settings.dynamic:
            config = LogConfig.of(self.settings.topic_config(given), message_format=self.persona.magic)
            held = self._log_configs[partition.topic] = (key, config)
        return held[1]

    # Topics

    def create_missing_topic(self, name: str, now: Instant) -> None:
        """A client asked for a topic that does not exist. Raises Declined."""
        if name in _PREFIX:
            self.create_internal_topic(name, now)
            return
        self._controller().create_topic(name, -1, -1, {})
        self.links.publish(now)

    def create_internal_topic(self, name: str, now: Instant) -> None:
        """Too few brokers for its replicas: nothing is created. Raises Declined.

        Kafka 0.9 and 0.10 created it with as many replicas as there were brokers, and so it stayed.
        """
        controller = self._controller()
        partitions = self.settings.number(f"{_PREFIX[name]}.num.partitions")
        replication = self.settings.number(f"{_PREFIX[name]}.replication.factor")
        if self.persona.creates_offsets_topic_short:
            replication = min(replication, len(controller.image.alive))
        controller.create_topic(name, partitions, replication, self._internal_config(name))
        self.links.publish(now)

    def _controller(self) -> Controller:
        controller = self.links.controller()
        if controller is None:
            raise Declined(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The controller cannot be reached.")
        return controller

    def _internal_config(self, name: str) -> dict[str, str]:
        config = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": self.settings.text(f"{_PREFIX[name]}.segment.bytes"),
        }
        if name == TRANSACTIONS_TOPIC:
            config["compression.type"] = "uncompressed"
            config["min.insync.replicas"] = self.settings.text("transaction.state.log.min.isr")
            config["unclean.leader.election.enable"] = "false"
        elif self.persona.magic == 0:
            config["compression.type"] = "uncompressed"
        return config


class BrokerSet:
    """The brokers of a cluster: which of them live, and which reach the controller and each other."""

    def __init__(self, brokers: Mapping[int, Broker]) -> None:
        self.by_id = brokers
        self.alive = set(brokers)
        self.isolated: set[int] = set()
        self.frozen: set[int] = set()
        """Brokers that learn of no newer image."""

    def __getitem__(self, node_id: int) -> Broker:
        return self.by_id[node_id]

    def living(self) -> list[Broker]:
        return [self.by_id[node_id] for node_id in sorted(self.alive)]

    def reaches_controller(self, node_id: int) -> bool:
        return node_id in self.alive and node_id not in self.isolated
