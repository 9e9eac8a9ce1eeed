"""The controller: it holds the true image of the cluster and changes it.

It notes which brokers are alive, elects leaders, creates and deletes topics, keeps settings, hands out
producer ids. Every change makes a new image; the fabric carries it to the brokers that can be reached.
Requests that cannot be granted raise `Declined` with Kafka's error code.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kelpie.broker import elections, placement, topic_names
from kelpie.broker.declined import Declined
from kelpie.broker.image import NO_LEADER, Endpoint, Image, PartitionImage, TopicImage
from kelpie.broker.personas import Persona
from kelpie.broker.settings import BrokerSettings, invalid, unknown_to_topics
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition


class Controller:
    def __init__(
        self,
        brokers: Sequence[Endpoint],
        cluster_id: str,
        settings: BrokerSettings,
        *,
        persona: Persona,
        new_topic_id: Callable[[], bytes],
    ) -> None:
        self._settings = settings
        self._persona = persona
        self._new_topic_id = new_topic_id
        self._next_producer_id = 0
        self.image = Image(
            version=1,
            cluster_id=cluster_id,
            brokers=MappingProxyType({broker.node_id: broker for broker in brokers}),
            alive=frozenset(broker.node_id for broker in brokers),
            topics=MappingProxyType({}),
            names=MappingProxyType({}),
            controller_id=min(broker.node_id for broker in brokers),
        )
        if persona.keeps_elr:
            # KIP-966: brokers must agree on which replicas may lead, so one value holds for the cluster.
            self.set_broker_config("", {"min.insync.replicas": settings.text("min.insync.replicas")})

    # Brokers

    def broker_lost(self, node: int) -> None:
        """Its session ended, or it shut down in order."""
        if node not in self.image.alive:
            return
        self.image = self.image.with_alive(self.image.alive - {node})
        self._each(lambda state, rules: elections.without(state, node, rules))

    def broker_returned(self, node: int, *, crashed: bool = False) -> None:
        """It is registered again. Partitions without a leader get one, if it may lead.

        `crashed`: it did not shut down in order the last time.
        """
        if node in self.image.alive:
            return
        if crashed:
            self._each(lambda state, rules: elections.crashed(state, node, rules))
        self.image = self.image.with_alive(self.image.alive | {node})
        self._each(
            lambda state, rules: (
                elections.elect(state, rules)
                if state.leader == NO_LEADER and node in state.replicas
                else state
            )
        )

    # Partitions

    def alter_isr(
        self, partition: TopicPartition, leader: int, leader_epoch: int, isr: Collection[int]
    ) -> bool:
        """The leader's own report. The report of a former leader is ignored."""
        state = self.image.partition(partition)
        if state is None or state.leader != leader or state.leader_epoch != leader_epoch:
            return False
        if not set(isr) <= self.image.alive:
            return False
        self._put(partition, elections.with_isr(state, isr, self._rules(partition.topic)))
        self._finish_reassignment(partition)
        return True

    def shrink_isr(self, partition: TopicPartition, isr: Collection[int]) -> None:
        """A fault: of the ISR only these are left. If the leader is not among them, another one leads."""
        state = self._known(partition)
        left = [node for node in state.isr if node in isr]
        if not left:
            raise Declined(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"None of {list(isr)} is in the ISR of {partition}."
            )
        self._put(partition, elections.with_isr(state, left, self._rules(partition.topic)))

    def make_leaderless(self, partition: TopicPartition) -> None:
        """A fault: no replica leads, though some live."""
        self._put(partition, elections.leaderless(self._known(partition)))

    def give_leader(self, partition: TopicPartition) -> None:
        """Ends that fault, or another: a replica that may lead becomes the leader."""
        elected = elections.elect(self._known(partition), self._rules(partition.topic))
        if elected.leader == NO_LEADER:
            raise Declined(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"No living replica of {partition} may lead it without a loss.",
            )
        self._put(partition, elected)

    def elect(self, partition: TopicPartition, *, unclean: bool) -> None:
        """An election on request (ElectLeaders)."""
        state = self.image.partition(partition)
        if state is None:
            known = partition.topic in self.image.topics
            what = f"partition as {partition}" if known else f"topic as {partition.topic}"
            raise Declined(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such {what}")
        alive = self.image.alive
        if not unclean:
            preferred = elections.prefer(state, alive)
            if preferred is not state:
                self._put(partition, preferred)
                return
            if state.leader != state.replicas[0]:
                raise Declined(
                    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
                )
        if not unclean or state.leader != NO_LEADER:
            raise Declined(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
        elected = elections.elect(state, replace(self._rules(partition.topic), unclean=True))
        if elected.leader == NO_LEADER:
            raise Declined(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                "Eligible topic partition leaders are not available.",
            )
        self._put(partition, elected)

    def reassign(self, partition: TopicPartition, replicas: Sequence[int]) -> None:
        """The replicas shall be these. The old ones stay until the new ones are in sync."""
        state = self._known(partition)
        wanted = tuple(replicas)
        placement.check(wanted, self.image)
        before = [node for node in state.replicas if node not in state.adding]
        adding = tuple(node for node in wanted if node not in before)
        removing = tuple(node for node in state.replicas if node not in wanted)
        moving = replace(state, replicas=(*wanted, *removing), adding=adding, removing=removing)
        self._put(partition, replace(moving, partition_epoch=state.partition_epoch + 1))
        self._finish_reassignment(partition)

    def cancel_reassignment(self, partition: TopicPartition) -> None:
        state = self._known(partition)
        if not state.adding and not state.removing:
            raise Declined(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        before = tuple(node for node in state.replicas if node not in state.adding)
        isr = tuple(node for node in state.isr if node in before)
        if not isr and state.isr:
            raise Declined(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Only new replicas are in sync: to cancel would need an unclean election.",
            )
        self._put(partition, elections.moved(state, before, isr, self._rules(partition.topic)))

    def _finish_reassignment(self, partition: TopicPartition) -> None:
        """Once the new replicas are in sync, the old ones go."""
        state = self._known(partition)
        if (not state.adding and not state.removing) or not set(state.adding) <= set(state.isr):
            return
        wanted = tuple(node for node in state.replicas if node not in state.removing)
        isr = tuple(node for node in wanted if node in state.isr)
        if isr:
            self._put(partition, elections.moved(state, wanted, isr, self._rules(partition.topic)))

    # Topics

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int,
        config: Mapping[str, str],
        assignment: Mapping[int, Sequence[int]] | None = None,
        *,
        dry_run: bool = False,
    ) -> TopicImage:
        """−1 asks for the default number of partitions or replicas."""
        topic_names.check(name, self.image.topics)
        for key, value in config.items():
            reason = invalid(key, value)
            if unknown_to_topics(key, old=self._persona.name != "4.3"):
                reason = f"Unknown topic config name: {key}"
            if reason:
                raise Declined(ErrorCode.INVALID_CONFIG, reason)
        if assignment:
            spread = placement.given(assignment, self.image)
        else:
            count = self._settings.number("num.partitions") if partitions == -1 else partitions
            copies = self._settings.number("default.replication.factor") if replication == -1 else replication
            spread = placement.spread(self.image, count, copies, first=len(self.image.topics))
        parts = tuple(self._new_partition(index, nodes) for index, nodes in enumerate(spread))
        topic = TopicImage(name, self._new_topic_id(), parts, dict(config))
        if not dry_run:
            self.image = self.image.with_topic(topic)
        return topic

    def delete_topic(self, name: str) -> None:
        self._topic(name)
        self.image = self.image.without_topic(name)

    def add_partitions(
        self, name: str, total: int, assignments: Sequence[Sequence[int]] | None, *, dry_run: bool = False
    ) -> None:
        topic = self._topic(name)
        count = len(topic.partitions)
        if total == count:
            raise Declined(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
        if total < count:
            raise Declined(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {name} currently has {count} partition(s); {total} would not be an increase.",
            )
        if total - count > placement.MOST_NEW_PARTITIONS:
            # Unlike CreateTopics: seen on 4.3.1, whose controller fails to write so many records at a time.
            raise Declined(ErrorCode.UNKNOWN_SERVER_ERROR, "")
        if assignments is not None and len(assignments) != total - count:
            raise Declined(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {total - count} additional partition(s), but only {len(assignments)} "
                "assignment(s) were specified.",
            )
        copies = len(topic.partitions[0].replicas)
        new = (
            placement.given(dict(enumerate(assignments)), self.image)
            if assignments is not None
            else placement.spread(self.image, total - count, copies, first=count)
        )
        added = [self._new_partition(count + index, nodes) for index, nodes in enumerate(new)]
        if not dry_run:
            self.image = self.image.with_topic(replace(topic, partitions=(*topic.partitions, *added)))

    # Settings and ids

    def set_topic_config(self, name: str, config: Mapping[str, str]) -> None:
        self.image = self.image.with_topic(replace(self.image.topics[name], config=dict(config)))

    def set_broker_config(self, node: str, config: Mapping[str, str]) -> None:
        changed = {**self.image.broker_config, node: dict(config)}
        self.image = replace(self.image, version=self.image.version + 1, broker_config=changed)
        self._settings.dynamic = changed.get("", {})

    def new_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def _new_partition(self, index: int, replicas: Sequence[int]) -> PartitionImage:
        alive = tuple(node for node in replicas if node in self.image.alive)
        if not alive:
            raise Declined(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {index}: none of the brokers {list(replicas)} is alive.",
            )
        return PartitionImage(tuple(replicas), alive, alive[0])

    def _rules(self, topic: str | TopicImage) -> elections.Rules:
        config = (self.image.topics[topic] if isinstance(topic, str) else topic).config
        return elections.Rules(
            self.image.alive,
            min_isr=int(self._settings.topic(config, "min.insync.replicas")),
            keeps_elr=self._persona.keeps_elr,
            unclean=self._settings.topic(config, "unclean.leader.election.enable") == "true",
        )

    def _topic(self, name: str) -> TopicImage:
        if name not in self.image.topics:
            raise Declined(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )
        return self.image.topics[name]

    def _known(self, partition: TopicPartition) -> PartitionImage:
        state = self.image.partition(partition)
        if state is None:
            raise Declined(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition: {partition}")
        return state

    def _put(self, partition: TopicPartition, state: PartitionImage) -> None:
        topic = self.image.topics[partition.topic]
        if topic.partitions[partition.partition] is not state:
            self.image = self.image.with_topic(topic.with_partition(partition.partition, state))

    def _each(self, change: Callable[[PartitionImage, elections.Rules], PartitionImage]) -> None:
        """Changes all partitions in one new image: a lost broker must not cost an image per partition."""
        topics = {}
        for name, topic in self.image.topics.items():
            rules = self._rules(topic)
            topics[name] = replace(
                topic, partitions=tuple(change(state, rules) for state in topic.partitions)
            )
        self.image = replace(self.image, version=self.image.version + 1, topics=MappingProxyType(topics))
