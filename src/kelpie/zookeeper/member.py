"""What both behaviours of a ZooKeeper consumer have in common: its state, registration, commits, ownership.

Procedures here yield requests (`procedures.py`). Requests wait while there is no connection, and are asked
again after a reconnection, as ZkClient does: an answer that was lost may mean that they were carried out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.zookeeper.assignment import Threads
from kelpie.zookeeper.config import Behaviour, PatternKind, ZookeeperConsumerConfig
from kelpie.zookeeper.effects import (
    ApplicationEvent,
    Ask,
    Effect,
    PartitionsLost,
    PartitionsReleased,
    StopFetching,
    Tell,
)
from kelpie.zookeeper.nodes import TOPICS, GroupPaths, read_offset, registration
from kelpie.zookeeper.procedures import Answers, Batch, Procedure, Procedures, Until
from kelpie.zookeeper.requests import (
    BadVersion,
    Children,
    CreateEphemeral,
    Delete,
    Names,
    Node,
    NodeExists,
    Put,
    Read,
    Written,
)
from kelpie.zookeeper.steps import (
    Cause,
    CommitRefused,
    FetchersStopped,
    OffsetsCommitted,
    OwnersReleased,
    Registered,
    Registering,
    RegistrationWaits,
    Step,
    StepHistory,
    TopicsChosen,
    Triggered,
)

_COMMIT_ROUNDS = 3


@dataclass(slots=True)
class Ownership:
    thread: str
    offset: int
    """The next offset that the application will consume; below 0: none yet."""
    version: int = -1
    """Of the node that holds the committed offset; −1: there is none."""


class Member:
    def __init__(self, config: ZookeeperConsumerConfig, consumer_id: str, draw: Callable[[int], int]) -> None:
        self.config = config
        self.consumer_id = consumer_id
        self.draw = draw
        self.is_faithful = config.behaviour is Behaviour.FAITHFUL
        self.paths = GroupPaths(config.group_id)
        self.path = self.paths.member(consumer_id)
        self.procedures = Procedures(self._ask)
        self.history = StepHistory()
        self.now: Instant = 0
        self.session = 0
        """The current session, or the last one; 0 before the first."""
        self.is_connected = False
        self.is_closing = False
        self.is_fetching = False
        self.is_rebalancing = False
        """The rebalance lock."""
        self.due: Cause | None = None
        """Why the next rebalance is due: what happens during one is gathered here."""
        self.owned: dict[TopicPartition, Ownership] = {}
        self.may_commit = True
        """False while the ownership is in doubt."""
        self.topics: tuple[str, ...] = ()
        """Of a pattern: the topics that it named last."""
        self.watches_brokers = False
        self.obstacle_is_gone = False
        """A node that was in the way of the last attempt has been deleted."""
        self._committed: dict[TopicPartition, int] = {}
        self._effects: list[Effect] = []
        self._pending: dict[int, Batch] = {}
        self._unasked: set[int] = set()
        self._token = 0

    # What follows.

    def effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def do(self, effect: Effect) -> None:
        self._effects.append(effect)

    def tell(self, event: ApplicationEvent) -> None:
        self._effects.append(Tell(event))

    def trigger(self, cause: Cause, path: str = "", value: bytes = b"") -> None:
        self.due = cause
        self.record(Triggered(cause, path, value.decode(errors="replace")))

    def record(self, step: Step) -> None:
        self.history.add(self.now, step)

    # Requests.

    def _ask(self, batch: Batch) -> int:
        self._token += 1
        self._pending[self._token] = batch
        if self.is_connected:
            self.do(Ask(self._token, batch))
        else:
            self._unasked.add(self._token)
        return self._token

    def ask_again(self) -> None:
        """The connection is back: what was not answered is asked again."""
        for token in sorted(self._unasked):
            self.do(Ask(token, self._pending[token]))
        self._unasked.clear()

    def connection_lost(self) -> None:
        self.is_connected = False
        self._unasked.update(self._pending)

    def forget_requests(self) -> None:
        """Their procedures have been interrupted."""
        self._pending.clear()
        self._unasked.clear()

    def answered(self, token: int, answers: Answers) -> None:
        if token in self._unasked or self._pending.pop(token, None) is None:
            return  # An answer of a connection that is gone.
        self.procedures.answered(token, answers)

    # Registration.

    def register(self) -> Procedure[None]:
        """Create the node in `ids`. A node of an earlier session is waited out: it is about to vanish."""
        self.record(Registering(self.path))
        while True:
            value = registration(self.config.subscription, self.now)
            (created,) = yield (CreateEphemeral(self.path, value),)
            if not isinstance(created, NodeExists):
                break
            (node,) = yield (Read(self.path),)
            if not isinstance(node, Node):
                continue
            if not self.is_faithful and node.session == self.session:
                break
            wait_ms = self.config.session_timeout_ms if self.is_faithful else self._short_wait_ms
            self.record(RegistrationWaits(self.path, node.value.decode(errors="replace"), wait_ms))
            yield Until(lambda: self.is_closing, self.now + wait_ms)
            if self.is_closing:
                return
        self.record(Registered(self.path))

    def unregister(self) -> Procedure[None]:
        (node,) = yield (Read(self.path),)
        if isinstance(node, Node) and node.session == self.session:
            yield (Delete(self.path),)

    @property
    def _short_wait_ms(self) -> int:
        return min(self.config.session_timeout_ms, max(100, self.config.rebalance_backoff_ms))

    def own_threads(self) -> Threads:
        """Threads for each topic that is read now."""
        return self.config.subscription.topics(self.topics)

    def choose_topics(self, *, watch: bool) -> Procedure[bool]:
        """For a pattern: which topics there are now. Whether that changed."""
        if self.config.subscription.kind is PatternKind.STATIC:
            return False
        (answer,) = yield (Children(TOPICS, watch),)
        names = answer.names if isinstance(answer, Names) else ()
        chosen = tuple(sorted(self.config.subscription.topics(names)))
        added = tuple(topic for topic in chosen if topic not in self.topics)
        deleted = tuple(topic for topic in self.topics if topic not in chosen)
        self.topics = chosen
        self.record(TopicsChosen(chosen, added, deleted, watch))
        return bool(added or deleted)

    # Reading, committing, owning.

    def stop_fetching(self) -> None:
        self.record(FetchersStopped(tuple(sorted(self.owned)) if self.is_fetching else ()))
        if self.is_fetching:
            self.is_fetching = False
            self.do(StopFetching())

    def commit(self, *, at_rebalance: bool = False) -> Procedure[None]:
        """Commit the consumed offsets that are new."""
        unknown = 0 if self.is_faithful else -1  # 0.8 never commits a first offset of 0.
        due = {
            partition: owned.offset
            for partition, owned in self.owned.items()
            if owned.offset >= 0 and self._committed.get(partition, unknown) != owned.offset
        }
        if not self.may_commit:
            due.clear()
        if self.is_faithful:
            yield tuple(
                Put(self.paths.offset(partition), str(offset).encode()) for partition, offset in due.items()
            )
            self._committed.update(due)
        else:
            yield from self._commit_forwards(due)
        self.record(OffsetsCommitted(due, at_rebalance))

    def _commit_forwards(self, due: dict[TopicPartition, int]) -> Procedure[None]:
        """An offset is replaced only by a greater one, and only if the node is as this consumer knows it."""
        left = dict(due)
        for _ in range(_COMMIT_ROUNDS):
            left = {partition: offset for partition, offset in left.items() if partition in self.owned}
            if not left:
                return
            written = yield tuple(
                Put(self.paths.offset(partition), str(offset).encode(), self.owned[partition].version)
                for partition, offset in left.items()
            )
            refused = []
            for partition, answer in zip(tuple(left), written, strict=True):
                if isinstance(answer, Written):
                    self._note_commit(partition, left.pop(partition), answer.version)
                elif isinstance(answer, BadVersion):
                    refused.append(partition)
            nodes = yield tuple(Read(self.paths.offset(partition)) for partition in refused)
            for partition, node in zip(refused, nodes, strict=True):
                stored, version = self._stored_offset(partition, node)
                if partition in self.owned:
                    self.owned[partition].version = version
                if stored >= left[partition]:
                    offset = left.pop(partition)
                    if stored == offset:
                        self._committed[partition] = offset  # Written before, its answer was lost.
                    else:
                        due.pop(partition)
                        self.record(CommitRefused(partition, offset))

    def _stored_offset(self, partition: TopicPartition, node: object) -> tuple[int, int]:
        """The committed offset and the version of its node."""
        if not isinstance(node, Node):
            return -1, -1
        return read_offset(self.paths.offset(partition), node.value), node.version

    def _note_commit(self, partition: TopicPartition, offset: int, version: int) -> None:
        self._committed[partition] = offset
        if partition in self.owned:
            self.owned[partition].version = version

    def release(self) -> Procedure[None]:
        """Delete the owner nodes. 0.8 does not look whose they are; recovering deletes only its own."""
        partitions = tuple(sorted(self.owned))
        paths = [self.paths.owner(partition) for partition in partitions]
        if not self.is_faithful:
            nodes = yield tuple(map(Read, paths))
            paths = [path for path, node in zip(paths, nodes, strict=True) if self.is_own(node)]
        yield tuple(map(Delete, paths))
        self.owned.clear()
        self.record(OwnersReleased(partitions))
        if partitions:
            self.tell(PartitionsReleased(partitions))

    def is_own(self, node: object) -> bool:
        """Whether it is a node of the current session."""
        return isinstance(node, Node) and node.session == self.session

    def take_on(self, positions: dict[TopicPartition, Ownership]) -> None:
        """All are claimed, and reading begins."""
        self.owned = positions
        self.may_commit = True
        self.is_fetching = True
        if not self.is_faithful:
            self._committed = {partition: owned.offset for partition, owned in positions.items()}

    def lose_ownership(self) -> None:
        """The session is gone, and the owner nodes with it."""
        partitions = tuple(sorted(self.owned))
        self.owned.clear()
        if partitions and self.may_commit:  # Otherwise it was told when the ownership came into doubt.
            self.tell(PartitionsLost(partitions))
