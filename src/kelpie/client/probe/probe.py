"""The way of a consumer to its first record, step by step, without a change to the user's group.

    cluster             reach a broker; which brokers exist
    offsets-partition   the group's partition of __consumer_offsets, and its leader
    coordinator         find it, as a consumer does
    group               the coordinator's description of the group
    join                join and sync, as a scratch group on the same partition, or under a given name
    positions           committed offsets, reset policy, validation
    records             a fetch from the positions

The group is only read: FindCoordinator, DescribeGroups, OffsetFetch. FindCoordinator would create
__consumer_offsets where it does not exist, and metadata requests do not. So metadata comes first.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from kelpie.client.admin.admin import Admin
from kelpie.client.admin.groups import ABSENT
from kelpie.client.admin.rows import Rows
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.probe.coordinator_finder import find_coordinator
from kelpie.client.probe.join_probe import JoinProbe
from kelpie.client.probe.read_probe import ReadProbe
from kelpie.client.probe.report import ChapterStatus, ProbeChapter, ProbeReport, last_failure
from kelpie.client.settings import Settings
from kelpie.cluster.health import succession
from kelpie.consumer.config import GroupProtocol
from kelpie.consumer.effects import BrokerNode
from kelpie.consumer.positions.reset_policy import LATEST, ResetPolicy
from kelpie.consumer.steps import ConsumerStep, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition, scratch_group
from kelpie.model.partitioning import partition_for
from kelpie.model.words import counted, listed
from kelpie.observations import OFFSETS_TOPIC, GroupState, PartitionView
from kelpie.observations.cluster import NO_LEADER
from kelpie.observations.groups import CONSUMER
from kelpie.questions.metadata import AskMetadata, ClusterFacts, PartitionFacts, TopicFacts
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE

_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """What to probe: a group, a topic, or one topic of a group."""

    group: str | None
    topic: str | None = None
    join_as: str | None = None
    """Join the group of this name, instead of a scratch group."""
    joins: bool = True
    policy: ResetPolicy = LATEST
    protocol: GroupProtocol = GroupProtocol.CLASSIC
    """The protocol to join with."""


class Probe:
    """`on_chapter` gets each chapter as soon as it is complete."""

    def __init__(
        self,
        settings: Settings,
        target: ProbeTarget,
        on_chapter: Callable[[ProbeChapter], None] | None = None,
    ) -> None:
        assert target.group is not None or target.topic is not None, "nothing to probe"
        self._settings = settings
        self._target = target
        self._on_chapter = on_chapter
        self._patience_s = settings.request_timeout_s
        self._token = secrets.token_hex(4)
        self.report = ProbeReport(target.group)
        self._nodes: Nodes
        self._scratch = ""
        self._name = ""
        """The group whose coordinator is asked: the user's, or the scratch group."""
        self._partitions: tuple[TopicPartition, ...] = ()

    async def run(self) -> ProbeReport:
        """Go on until a chapter fails, or to the end."""
        nodes = await self._reach()
        if nodes is None:
            return self.report
        async with nodes:
            self._nodes = nodes
            await self._walk()
        return self.report

    async def _walk(self) -> None:
        goes_on = await self._look_at_offsets_topic()
        coordinator = await self._find_coordinator() if goes_on else None
        if goes_on and coordinator is None:
            return
        if coordinator is not None and not await self._look_at_group(coordinator):
            return
        if not await self._choose_partitions():
            return
        if coordinator is not None and not await self._join(coordinator):
            return
        await self._read(coordinator)

    # The cluster.

    async def _reach(self) -> Nodes | None:
        addresses = ", ".join(map(str, self._settings.bootstrap))
        title = "Reach the cluster"
        try:
            nodes = await Nodes.open(self._settings)
        except ClientError as error:
            self._add(
                ProbeChapter(
                    "cluster",
                    title,
                    ChapterStatus.FAILED,
                    (f"Tried {addresses}.",),
                    " ".join(dict.fromkeys(cause.reason for cause in error.causes)),
                    "one broker that answers at one of these addresses",
                )
            )
            return None
        brokers = sorted(nodes.brokers)
        named = ", ".join(f"{node} at {nodes.brokers[node].address}" for node in brokers[:6])
        more = f" and {len(brokers) - 6} more" if len(brokers) > 6 else ""
        self._add(
            ProbeChapter(
                "cluster", title, ChapterStatus.OK, (f"{counted(len(brokers), 'broker')}: {named}{more}.",)
            )
        )
        return nodes

    async def _look_at_offsets_topic(self) -> bool:
        """Whether the offsets topic exists: then the probe may ask for the coordinator."""
        title = "Find the group's partition of the offsets topic"
        group = self._target.group
        try:
            facts = await self._nodes.put_any(AskMetadata((OFFSETS_TOPIC,)))
        except ClientError as error:
            return self._add(
                _failed("offsets-partition", title, error.reason, "the metadata of __consumer_offsets")
            )
        topic = facts.topics[OFFSETS_TOPIC]
        if not topic.partitions:
            self._add(self._without_offsets_topic(title, topic))
            return False
        partitions = len(topic.partitions)
        number = secrets.randbelow(partitions) if group is None else partition_for(group, partitions)
        self._scratch = _scratch_name(self._token, number, partitions)
        self._name = self._scratch if group is None else group
        self._add(_offsets_partition(title, self._name, number, topic, facts))
        return True

    def _without_offsets_topic(self, title: str, topic: TopicFacts) -> ProbeChapter:
        if topic.error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            why = f"{OFFSETS_TOPIC}: {describe(topic.error)}. {info(topic.error).meaning}"
            return _failed("offsets-partition", title, why, f"a topic {OFFSETS_TOPIC} with partitions")
        said = (
            f"There is no topic {OFFSETS_TOPIC}: no group has been used on this cluster yet. It is created "
            "when a consumer first asks for its coordinator; looking does not ask."
        )
        if self._target.group is None:
            return ProbeChapter("offsets-partition", title, ChapterStatus.SKIPPED, (said,))
        why = "Without the offsets topic a group has no coordinator, and nothing committed."
        needed = f"a topic {OFFSETS_TOPIC} with partitions"
        return ProbeChapter("offsets-partition", title, ChapterStatus.FAILED, (said,), why, needed)

    # The coordinator.

    async def _find_coordinator(self) -> BrokerNode | None:
        title = "Find the coordinator"
        finder = await find_coordinator(self._settings, self._nodes.memory, self._name, self._patience_s)
        node = finder.coordinator
        if node is not None:
            self._forgive("offsets-partition", f"A moment later broker {node.node_id} led it.")
            said = (f"It is broker {node.node_id} at {node.address}.",)
            self._add(ProbeChapter("coordinator", title, ChapterStatus.OK, said, steps=finder.steps))
            return node
        last = last_failure(finder.steps)
        why = "No broker has told it." if last is None else f"{last.answer}. {last.follows}"
        if finder.problem is not None:
            why = finder.problem.text
        needed = "a broker" if last is None else last.needed
        self._add(ProbeChapter("coordinator", title, ChapterStatus.FAILED, (), why, needed, finder.steps))
        return None

    async def _look_at_group(self, coordinator: BrokerNode) -> bool:
        title = "Ask the coordinator about the group"
        group = self._target.group
        if group is None:
            return True
        admin = Admin(self._nodes)
        described, step = await self._describe(admin, coordinator, group)
        needed = f"an answer from broker {coordinator.node_id} at {coordinator.address}"
        if not described.rows:
            return self._add(_failed("group", title, _first_reason(described), needed))
        state = described[0]
        is_missing = state.state == ABSENT or state.error is ErrorCode.GROUP_ID_NOT_FOUND
        if state.error and state.error is not ErrorCode.GROUP_ID_NOT_FOUND:
            why = f"{step.request} was answered {describe(state.error)}. {info(state.error).meaning}"
            return self._add(_failed("group", title, why, "the group's state and members"))
        if state.protocol_type not in ("", PROTOCOL_TYPE):
            why = f"Group {group} is of type {state.protocol_type}; its members are no consumers."
            return self._add(_failed("group", title, why, "a group of type consumer"))
        committed = await admin.committed([group], require_stable=False)
        if committed.unasked:
            return self._add(_failed("group", title, _first_reason(committed), needed))
        topics = {row.topic for row in committed if row.offset >= 0}
        for member in state.members:
            topics.update(member.subscribed or (), (topic for topic, _ in member.assigned or ()))
        self.report.topics = tuple(sorted(topics))
        sentence = _group_told(group, None if is_missing else state, self.report.topics)
        return self._add(ProbeChapter("group", title, ChapterStatus.OK, (sentence,), steps=(step,)))

    async def _describe(
        self, admin: Admin, node: BrokerNode, group: str
    ) -> tuple[Rows[GroupState], ConsumerStep]:
        """The description of the group. While the coordinator loads or moves, it is asked again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        times = 0
        while True:
            times += 1
            begun, begun_at = loop.time(), int(time.time() * 1000)
            described = await admin.describe_groups([group])
            error = next((state.error for state in described), ErrorCode.NONE)
            # Without a row, the coordinator may be new to the list of brokers, which is asked for anew.
            again = info(error).retriable if error else not described.rows and times == 1
            if not again or loop.time() > deadline:
                break
            await asyncio.sleep(_AGAIN_S)
        took_ms = int((loop.time() - begun) * 1000)
        is_newer = any(state.kind == CONSUMER and not state.error for state in described)
        request = f"{'ConsumerGroupDescribe' if is_newer else 'DescribeGroups'}({group})"
        answer = describe(error) if error else "".join(state.state for state in described)
        return described, ConsumerStep(
            begun_at, StepKind.DESCRIBE, str(node), request, answer, took_ms, "", times=times
        )

    # The topics.

    async def _choose_partitions(self) -> bool:
        title = "Choose what to read"
        topics = (self._target.topic,) if self._target.topic is not None else self.report.topics
        if not topics:
            why = (
                f"Group {self._target.group} has no members and has committed nothing, so nothing tells "
                "which topics it reads. Name one with --topic."
            )
            return self._add(_failed("topics", title, why, "a topic"))
        try:
            facts = await self._nodes.put_any(AskMetadata(topics))
        except ClientError as error:
            return self._add(_failed("topics", title, error.reason, "the metadata of the topics"))
        self.report.topics = topics
        self._partitions = tuple(
            TopicPartition(name, number)
            for name, topic in facts.topics.items()
            for number in topic.partitions
        )
        wrong = {name: topic.error for name, topic in facts.topics.items() if not topic.partitions}
        if self._partitions and (not wrong or self._target.topic is None):
            return True
        name, code = next(iter(wrong.items()))
        why = f"Topic {name}: {describe(code)}. {info(code).meaning}"
        return self._add(_failed("topics", title, why, "partitions with leaders"))

    # Joining and reading.

    async def _join(self, coordinator: BrokerNode) -> bool:
        target = self._target
        if not target.joins:
            said = ("Not tried: only reading was asked for.",)
            return self._add(ProbeChapter("join", "Join", ChapterStatus.SKIPPED, said))
        name = target.join_as if target.join_as is not None else self._scratch
        probe = JoinProbe(self._nodes, name, self.report.topics, protocol=target.protocol)
        return self._add(await probe.run(coordinator, is_scratch=target.join_as is None))

    async def _read(self, coordinator: BrokerNode | None) -> None:
        group = None if coordinator is None else self._name
        reading = ReadProbe(self._nodes, group, self._partitions, policy=self._target.policy)
        for chapter in await reading.run():
            self._add(chapter)
        self.report.starts = reading.starts
        self.report.reached = self.report.failure is None

    def _forgive(self, name: str, said: str) -> None:
        """The failure of this chapter has passed since: its status becomes OK."""
        for at, chapter in enumerate(self.report.chapters):
            if chapter.name == name and chapter.verdict is ChapterStatus.FAILED:
                sentence = (*chapter.said, chapter.why, said)
                self.report.chapters[at] = replace(
                    chapter, verdict=ChapterStatus.OK, said=sentence, why="", needed=""
                )

    def _add(self, chapter: ProbeChapter) -> bool:
        """Whether the probe goes on."""
        self.report.chapters.append(chapter)
        if self._on_chapter is not None:
            self._on_chapter(chapter)
        return chapter.verdict is not ChapterStatus.FAILED


def _scratch_name(token: str, partition: int, partitions: int) -> str:
    """The name of a scratch group on the same partition of the offsets topic as the user's group.

    Both have the same coordinator, so what works for one works for the other; the user's group does not
    change. The probe leaves and deletes the scratch group. Kafka before 1.1 cannot delete groups: 0.9 forgets
    a group with its last member, later releases at the next clean-up, because nothing is committed.
    """
    names = (scratch_group(token, number) for number in count())
    return next(name for name in names if partition_for(name, partitions) == partition)


def _failed(name: str, title: str, why: str, needed: str) -> ProbeChapter:
    return ProbeChapter(name, title, ChapterStatus.FAILED, (), why, needed)


def _offsets_partition(
    title: str, name: str, number: int, topic: TopicFacts, facts: ClusterFacts
) -> ProbeChapter:
    rows = topic.partitions[number]
    node = f"{name} belongs to partition {number} of {len(topic.partitions)} of {OFFSETS_TOPIC}"
    replicas = ", ".join(map(str, rows.replicas)) or "none"
    isr = ", ".join(map(str, rows.isr)) or "none"
    if rows.leader is not None and rows.leader in facts.brokers:
        said = f"{node}. Broker {rows.leader} leads it; replicas {replicas}, in sync {isr}."
        return ProbeChapter("offsets-partition", title, ChapterStatus.OK, (said,))
    leader = "No broker" if rows.leader is None else f"Broker {rows.leader}, which is not there,"
    if not rows.replicas:  # Kafka 0.9 names only replicas that are alive.
        why = f"{leader} leads it, and no replica of it is alive."
        needed = f"a leader for {OFFSETS_TOPIC}-{number}: a broker that holds a replica of it back in service"
    else:
        why = f"{leader} leads it; replicas {replicas}, in sync {isr}."
        dead = [node for node in rows.replicas if node not in facts.brokers]
        if dead:
            why += f" Not among the brokers of the cluster: {', '.join(map(str, dead))}."
        needed = f"a leader for {OFFSETS_TOPIC}-{number}: {_heirs(number, rows, facts)}"
    return ProbeChapter("offsets-partition", title, ChapterStatus.FAILED, (f"{node}.",), why, needed)


def _heirs(number: int, rows: PartitionFacts, facts: ClusterFacts) -> str:
    view = PartitionView(OFFSETS_TOPIC, number, NO_LEADER, rows.replicas, rows.isr)
    heirs = succession(view, lambda node: node in facts.brokers)
    if not heirs.to_start:
        return f"a replica on brokers {', '.join(map(str, rows.replicas))} that was in sync, back in service"
    rest = f" (not broker {listed(heirs.incomplete, 'or')}, which lacks records)" if heirs.incomplete else ""
    return f"broker {listed(heirs.to_start, 'or')} back in service{rest}"


def _first_reason(rows: Rows[Any]) -> str:
    return next((row.reason for row in rows.unasked), "The coordinator left the group out of its answer.")


def _group_told(group: str, state: GroupState | None, topics: tuple[str, ...]) -> str:
    shown = ", ".join(topics[:6]) + (" …" if len(topics) > 6 else "")
    if state is None:
        sentence = f"It lists no group {group}: nobody is a member."
        return (
            f"{sentence} Offsets are committed for {shown}."
            if topics
            else f"{sentence} Nothing is committed."
        )
    sentence = f"{group} is {state.state}, with {counted(len(state.members), 'member')}"
    sentence += f" and the assignor {state.protocol}." if state.protocol else "."
    return f"{sentence} It reads {shown}." if topics else sentence
