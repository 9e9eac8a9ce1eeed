"""The group coordinator of one broker: a shard for each partition of `__consumer_offsets` that it leads."""

from kelpie.broker.host import Host
from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.broker.replica import Replica
from kelpie.broker.shard_host import CoordinatorService, ShardHost
from kelpie.coordinator.config import CONFIG_0_9, GroupConfig
from kelpie.coordinator.release_behaviour import BEHAVIOUR_0_9, BEHAVIOUR_2_8, BEHAVIOUR_3_9, BEHAVIOUR_4_3
from kelpie.coordinator.shard import GroupShard
from kelpie.errors import ErrorCode
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant

BEHAVIOUR = {"0.9": BEHAVIOUR_0_9, "2.8": BEHAVIOUR_2_8, "3.9": BEHAVIOUR_3_9, "4.3": BEHAVIOUR_4_3}


class GroupService(CoordinatorService):
    topic = OFFSETS_TOPIC

    def __init__(self, broker: Host) -> None:
        super().__init__(broker)
        self._topics: frozenset[str] = frozenset(broker.image.topics)
        self.behaviour = BEHAVIOUR[broker.persona.name]

    def follow_image(self, now: Instant) -> None:
        self._forget_deleted_topics(now)
        super().follow_image(now)

    def _begin(self, index: int, replica: Replica, now: Instant) -> None:
        config = CONFIG_0_9 if self._broker.persona.name == "0.9" else GroupConfig()
        shard = GroupShard(
            GroupConfig.of({**self._broker.settings.given, **self._broker.settings.dynamic}, config),
            self.behaviour,
            self._broker.links.new_id,
        )
        host = self.hosts[index] = ShardHost(self._broker, replica, shard, replica.leader_epoch)
        host.begin(now)
        delays = self._broker.load_delays
        delay = delays.get(index, delays.get(None, 0))
        if not delay:
            host.load(now)
            return

        def load(at: Instant) -> None:
            if self.hosts.get(index) is host:
                host.load(at)

        self._broker.timers.set(("load", index), now + delay, load)

    def _forget_deleted_topics(self, now: Instant) -> None:
        topics = frozenset(self._broker.image.topics)
        gone, self._topics = self._topics - topics, topics
        if gone:
            for host in list(self.hosts.values()):
                if host.active:
                    host.carry_out(host.shard.topic_deleted(gone, now), now)

    def partition_of(self, group_id: str) -> int:
        topic = self._broker.image.topic(OFFSETS_TOPIC)
        count = (
            len(topic.partitions) if topic else self._broker.settings.number("offsets.topic.num.partitions")
        )
        return partition_for(group_id, count)

    def host_for(self, group_id: str, *, named: bool = False) -> ShardHost | ErrorCode:
        """The shard of a group, or why this broker cannot answer for it.

        `named`: the request needs a group id. Kafka checks that first, and ownership last.
        """
        if named and not group_id and self.behaviour.refuses_empty_group_ids:
            return ErrorCode.INVALID_GROUP_ID
        host = self.hosts.get(self.partition_of(group_id))
        if host is None:
            return ErrorCode.NOT_COORDINATOR
        return host if host.active else ErrorCode(self._broker.persona.loading)

    @property
    def loading(self) -> bool:
        return any(not host.active for host in self.hosts.values())
