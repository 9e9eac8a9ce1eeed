"""One attempt to rebalance, and a rebalance: attempts with back-off between them.

The steps, in the order of ZKRebalancerListener.rebalance of Kafka 0.8.2.2:

1.  Are there brokers? Without one the attempt ends, as a success, and brokers are watched.
2.  Stop the fetchers, commit what was consumed, delete the own owner nodes.
3.  Read who is registered for what, and which partitions there are; share them out by range.
4.  Read the committed offsets of the own partitions.
5.  Create an owner node for each. All are tried, also after a conflict.
6.  On a conflict: delete those that were just created; the attempt has failed. Else fetch.

After a failed attempt the consumer sleeps, also after the last one: what counts is (retries − 1) × back-off.

| | faithful | recovering |
|---|---|---|
| a node vanishes between list and read | the attempt fails | it is left out |
| own name in an owner node | a claim, whatever session wrote it | a claim only if this session wrote it |
| offsets | read before the claim: the last owner may still commit | read after the claim |
| sleep between attempts | always in full | ends when a node that was in the way is deleted |
"""

from collections.abc import Callable, Mapping

from kelpie.model.names import TopicPartition
from kelpie.zookeeper.assignment import Threads, assign, threads_of_topic
from kelpie.zookeeper.config import PatternKind, Subscription
from kelpie.zookeeper.effects import FetchPosition, PartitionsOwned, StartFetching
from kelpie.zookeeper.member import Member, Ownership
from kelpie.zookeeper.nodes import (
    BROKERS,
    TOPICS,
    Broker,
    UnreadableNode,
    read_broker,
    read_offset,
    read_partitions,
    read_registration,
    thread_id,
    topic_path,
)
from kelpie.zookeeper.procedures import Procedure, Until
from kelpie.zookeeper.requests import (
    Children,
    CreateEphemeral,
    Delete,
    Names,
    Node,
    NodeExists,
    Read,
)
from kelpie.zookeeper.steps import (
    AttemptBegan,
    AttemptBroken,
    AttemptEnded,
    BackingOff,
    Cause,
    Claimed,
    ClaimTrusted,
    Conflict,
    NoBrokers,
    NodeIgnored,
    OffsetsRead,
    RolledBack,
    TopicAssigned,
)


class RebalanceError(Exception):
    """ConsumerRebalanceFailedException: all attempts have failed."""

    def __init__(self, cause: Cause, attempts: int) -> None:
        super().__init__(cause, attempts)
        self.cause = cause
        self.attempts = attempts


class _NodeMissing(Exception):
    """A node that was listed a moment ago is gone."""


def rebalance(member: Member, cause: Cause, hastened: Callable[[], bool] | None = None) -> Procedure[None]:
    """Up to rebalance.max.retries attempts. Raises RebalanceError.

    `hastened` ends a back-off early; the attempt before it then does not count.
    """
    yield Until(lambda: not member.is_rebalancing)
    member.is_rebalancing = True
    config = member.config
    number = failed = 0
    try:
        while failed < config.rebalance_max_retries:
            if member.is_closing:
                return
            if (yield from _try(member, number, cause)):
                return
            member.stop_fetching()
            if config.auto_commit_enable:
                yield from member.commit(at_rebalance=True)
            member.record(BackingOff(config.rebalance_backoff_ms))
            over_at = member.now + config.rebalance_backoff_ms
            yield Until(hastened, over_at)
            number += 1
            failed += member.now >= over_at
    finally:
        member.is_rebalancing = False
    raise RebalanceError(cause, number)


def _try(member: Member, number: int, cause: Cause) -> Procedure[bool]:
    member.record(AttemptBegan(number, cause))
    member.obstacle_is_gone = False
    if not member.is_faithful:
        member.due = None  # What has changed until now, this attempt sees.
    try:
        succeeded = yield from attempt(member)
    except (_NodeMissing, UnreadableNode) as error:
        member.record(AttemptBroken(str(error)))
        succeeded = False
    positions = {partition: owned.offset for partition, owned in member.owned.items()}
    member.record(AttemptEnded(number, succeeded, positions))
    return succeeded


def attempt(member: Member) -> Procedure[bool]:
    brokers = yield from _brokers(member)
    own = yield from _own_threads(member)
    if not brokers:
        member.record(NoBrokers())
        member.watches_brokers = True
        yield (Children(BROKERS, watch=True),)
        return True
    member.stop_fetching()
    if member.config.auto_commit_enable:
        yield from member.commit(at_rebalance=True)
    yield from member.release()
    members = yield from _members(member)
    if member.is_faithful and member.consumer_id not in members:
        raise _NodeMissing(f"{member.path} is gone.")
    members[member.consumer_id] = own
    shares = yield from _share_out(member, members)
    if member.is_faithful:
        positions = yield from _read_offsets(member, shares)
        claimed = yield from _claim(member, shares)
    else:
        claimed = yield from _claim(member, shares)
        positions = (yield from _read_offsets(member, shares)) if claimed else {}
    if not claimed:
        return False
    _start_fetching(member, positions, brokers)
    return True


def _start_fetching(
    member: Member, positions: dict[TopicPartition, Ownership], brokers: tuple[Broker, ...]
) -> None:
    member.take_on(positions)
    starts = {partition: FetchPosition(owned.offset, owned.thread) for partition, owned in positions.items()}
    member.do(StartFetching(starts, brokers))
    if positions:
        member.tell(PartitionsOwned(tuple(sorted(positions))))


def _brokers(member: Member) -> Procedure[tuple[Broker, ...]]:
    (answer,) = yield (Children(BROKERS, member.watches_brokers),)
    names = sorted(answer.names, key=lambda name: (len(name), name)) if isinstance(answer, Names) else []
    paths = [f"{BROKERS}/{name}" for name in names]
    nodes = yield tuple(map(Read, paths))
    return tuple(
        read_broker(path, node.value)
        for path, node in zip(paths, nodes, strict=True)
        if _is_there(member, path, node)
    )


def _own_threads(member: Member) -> Procedure[Threads]:
    """By its own registration, as 0.8 does; recovering registers again if the node has been deleted."""
    (node,) = yield (Read(member.path),)
    if not isinstance(node, Node) and not member.is_faithful:
        yield from member.register()
    else:
        _is_there(member, member.path, node)
    if member.config.subscription.kind is PatternKind.STATIC:
        return member.own_threads()
    (answer,) = yield (Children(TOPICS),)
    return member.config.subscription.topics(answer.names if isinstance(answer, Names) else ())


def _members(member: Member) -> Procedure[dict[str, Threads]]:
    """All registered consumers, with their threads per topic. Patterns mean the topics that exist now."""
    (answer,) = yield (Children(member.paths.ids, watch=True),)
    names = answer.names if isinstance(answer, Names) else ()
    nodes = yield tuple(Read(member.paths.member(name)) for name in names)
    subscriptions: dict[str, Subscription] = {}
    for name, node in zip(names, nodes, strict=True):
        path = member.paths.member(name)
        if not _is_there(member, path, node):
            continue
        try:
            subscriptions[name] = read_registration(path, node.value)
        except UnreadableNode as error:
            if member.is_faithful:
                raise
            member.record(NodeIgnored(path, str(error)))
    existing: tuple[str, ...] = ()
    if any(subscription.kind is not PatternKind.STATIC for subscription in subscriptions.values()):
        (answer,) = yield (Children(TOPICS),)
        existing = answer.names if isinstance(answer, Names) else ()
    return {name: subscription.topics(existing) for name, subscription in subscriptions.items()}


def _share_out(member: Member, members: Mapping[str, Threads]) -> Procedure[dict[TopicPartition, str]]:
    own = members[member.consumer_id]
    topics = tuple(own)
    nodes = yield tuple(Read(topic_path(topic), watch=True) for topic in topics)
    partitions = {
        topic: read_partitions(topic_path(topic), node.value) if isinstance(node, Node) else ()
        for topic, node in zip(topics, nodes, strict=True)
    }
    shares = assign(member.consumer_id, members, partitions)
    for topic in topics:
        mine: dict[str, list[int]] = {
            thread_id(member.consumer_id, number): [] for number in range(own[topic])
        }
        for partition, thread in shares.items():
            if partition.topic == topic:
                mine[thread].append(partition.partition)
        threads = tuple(threads_of_topic(topic, members))
        listed = tuple((thread, tuple(numbers)) for thread, numbers in mine.items())
        member.record(TopicAssigned(topic, partitions[topic], threads, listed))
    return shares


def _read_offsets(
    member: Member, shares: Mapping[TopicPartition, str]
) -> Procedure[dict[TopicPartition, Ownership]]:
    paths = {partition: member.paths.offset(partition) for partition in shares}
    nodes = yield tuple(map(Read, paths.values()))
    positions: dict[TopicPartition, Ownership] = {}
    for (partition, thread), node in zip(shares.items(), nodes, strict=True):
        if isinstance(node, Node):
            offset = read_offset(paths[partition], node.value)
            positions[partition] = Ownership(thread, offset, node.version)
        else:
            positions[partition] = Ownership(thread, -1)
    member.record(OffsetsRead({partition: owned.offset for partition, owned in positions.items()}))
    return positions


def _claim(member: Member, shares: Mapping[TopicPartition, str]) -> Procedure[bool]:
    """Create all owner nodes, or none. In recovering, nodes in the way are watched."""
    paths = {partition: member.paths.owner(partition) for partition in shares}
    answers = yield tuple(
        CreateEphemeral(paths[partition], thread.encode()) for partition, thread in shares.items()
    )
    created: list[TopicPartition] = []
    existing: list[TopicPartition] = []
    for partition, answer in zip(shares, answers, strict=True):
        (existing if isinstance(answer, NodeExists) else created).append(partition)
    nodes = yield tuple(Read(paths[partition], watch=not member.is_faithful) for partition in existing)
    in_the_way = dict(zip(existing, nodes, strict=True))
    conflicts = 0
    for partition, thread in shares.items():
        node = in_the_way.get(partition)
        if partition not in in_the_way:
            member.record(Claimed(partition, thread))
        elif isinstance(node, Node) and node.value == thread.encode() and _may_trust(member, node):
            own = node.session == member.session
            member.record(ClaimTrusted(paths[partition], partition, thread, own))
            created.append(partition)
        else:
            conflicts += 1
            member.obstacle_is_gone |= not isinstance(node, Node)
            member.record(_conflict(paths[partition], partition, thread, node))
    if conflicts:
        yield tuple(Delete(paths[partition]) for partition in created)
        if created:
            member.record(RolledBack(tuple(sorted(created))))
    return not conflicts


def _may_trust(member: Member, node: Node) -> bool:
    """Whether a node with the own name is a claim. An expired session's node is about to be removed."""
    return member.is_faithful or node.session == member.session


def _conflict(path: str, partition: TopicPartition, thread: str, node: object) -> Conflict:
    if not isinstance(node, Node):
        return Conflict(path, partition, thread, None)
    stored = node.value.decode(errors="replace")
    return Conflict(path, partition, thread, stored, node.session, is_own_stale=stored == thread)


def _is_there(member: Member, path: str, node: object) -> bool:
    if isinstance(node, Node):
        return True
    if member.is_faithful:
        raise _NodeMissing(f"{path} is gone.")
    return False
