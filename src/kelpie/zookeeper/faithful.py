"""The threads of ZookeeperConsumerConnector of Kafka 0.8.2.2, and what each does with a failed rebalance.

| thread | rebalances | a failure |
|---|---|---|
| the application's (createMessageStreams) | at the start | is raised to the application |
| watcher executor | when its flag is set: members, partitions, brokers changed | is logged, no more |
| ZkClient's event thread | after a new session; when a pattern names other topics | dies there |
| auto-committer | never | |

The flag gathers what happens during a rebalance. One lock keeps rebalances apart; `close` takes it too.
ZkClient handles one event after the other, and reads the node again to set its watch again. After an expiry
it first handles the new session, then treats every watch as fired.
"""

from collections import deque
from enum import Enum

from kelpie.zookeeper.attempt import RebalanceError, rebalance
from kelpie.zookeeper.config import PatternKind
from kelpie.zookeeper.effects import EndSession, RebalanceFailure
from kelpie.zookeeper.member import Member
from kelpie.zookeeper.nodes import BROKERS, TOPICS, topic_path
from kelpie.zookeeper.procedures import Procedure, Until
from kelpie.zookeeper.requests import Children, Node, Read
from kelpie.zookeeper.steps import Cause, Closed, Closing, RebalanceFailed, SessionExpired


class _NewSession(Enum):
    EVENT = "a new session began"


class FaithfulThreads:
    def __init__(self, member: Member) -> None:
        self._member = member
        self._events: deque[str | _NewSession] = deque()
        self._data_paths: set[str] = set()
        self._is_subscribed = False
        self._watches_topics = False

    # Events.

    def start(self) -> None:
        self._member.procedures.begin("application", self._start())
        self._member.procedures.begin("events", self._handle_events())

    def watch_fired(self, path: str) -> None:
        self._events.append(path)

    def disconnected(self) -> None:
        """ZkClient waits; readers read on."""

    def session_expired(self) -> None:
        self._member.record(SessionExpired())

    def connected(self, *, is_new: bool) -> None:
        if is_new and self._is_subscribed:
            self._events.append(_NewSession.EVENT)
            self._events.append(self._member.paths.ids)
            if self._member.watches_brokers:
                self._events.append(BROKERS)
            if self._watches_topics:
                self._events.append(TOPICS)
            self._events.extend(sorted(self._data_paths))
        self._member.ask_again()

    def close(self) -> None:
        self._member.procedures.begin("close", self._close())

    # The application's thread.

    def _start(self) -> Procedure[None]:
        member = self._member
        yield Until(lambda: member.is_connected)
        if member.config.auto_commit_enable:
            member.procedures.begin("committer", self._commit_regularly())
        yield from member.choose_topics(watch=False)
        yield from member.register()
        member.procedures.begin("watcher", self._watch())
        yield from self._subscribe()
        try:
            yield from rebalance(member, Cause.START)
        except RebalanceError as failed:
            member.record(RebalanceFailed(Cause.START, failed.attempts, is_told=True))
            member.tell(RebalanceFailure(member.consumer_id, Cause.START, failed.attempts, None))
            return
        if member.config.subscription.kind is not PatternKind.STATIC and not member.is_closing:
            self._watches_topics = True
            if (yield from member.choose_topics(watch=True)):
                self._events.append(TOPICS)

    def _subscribe(self) -> Procedure[None]:
        member = self._member
        self._is_subscribed = True
        self._data_paths.update(topic_path(topic) for topic in member.own_threads())
        watches = (Read(path, watch=True) for path in sorted(self._data_paths))
        yield (Children(member.paths.ids, watch=True), *watches)

    # The watcher executor.

    def _watch(self) -> Procedure[None]:
        member = self._member
        while True:
            yield Until(lambda: member.due is not None or member.is_closing)
            if member.is_closing:
                return
            cause, member.due = member.due, None
            assert cause is not None
            try:
                yield from rebalance(member, cause)
            except RebalanceError as failed:
                member.record(RebalanceFailed(cause, failed.attempts, is_told=False))

    # ZkClient's event thread.

    def _handle_events(self) -> Procedure[None]:
        member = self._member
        while True:
            yield Until(lambda: bool(self._events))
            event = self._events.popleft()
            if isinstance(event, _NewSession):
                yield from self._handle_new_session()
            elif event == TOPICS:
                yield from self._handle_topics()
            elif event in (member.paths.ids, BROKERS):
                yield (Children(event, watch=True),)
                member.trigger(Cause.MEMBERS if event == member.paths.ids else Cause.BROKERS)
            elif event in self._data_paths:
                (node,) = yield (Read(event, watch=True),)
                member.trigger(Cause.PARTITIONS, event, node.value if isinstance(node, Node) else b"")

    def _handle_new_session(self) -> Procedure[None]:
        member = self._member
        member.owned.clear()
        yield from member.register()
        yield from self._rebalance_here(Cause.SESSION)

    def _handle_topics(self) -> Procedure[None]:
        if (yield from self._member.choose_topics(watch=True)):
            yield from self._subscribe()
            yield from self._rebalance_here(Cause.TOPICS)

    def _rebalance_here(self, cause: Cause) -> Procedure[None]:
        try:
            yield from rebalance(self._member, cause)
        except RebalanceError as failed:
            self._member.record(RebalanceFailed(cause, failed.attempts, is_told=False))

    # The auto-committer, and the end.

    def _commit_regularly(self) -> Procedure[None]:
        member = self._member
        while True:
            yield Until(lambda: member.is_closing, member.now + member.config.auto_commit_interval_ms)
            if member.is_closing:
                return
            yield from member.commit()

    def _close(self) -> Procedure[None]:
        member = self._member
        began = member.now
        member.is_closing = True
        member.record(Closing())
        yield Until(lambda: not member.is_rebalancing)
        member.is_rebalancing = True
        member.stop_fetching()
        if member.config.auto_commit_enable:
            yield from member.commit()
        member.do(EndSession())
        member.record(Closed(member.now - began))
