"""Kelpie's own behaviour: the protocol of Kafka 0.8, and a way back from every failure.

One procedure, `_live`, registers and rebalances; nothing else does. What ends it early comes back to it:

| what happens | what follows |
|---|---|
| a rebalance failed | tell; wait (back-off with jitter) or see a change; leave, register again, rebalance |
| the session expired | tell that partitions are lost; register in the new session, rebalance |
| ZooKeeper is away | read on while the session surely lives, then stop; the same session back: rebalance |
| the own registration was deleted | register again |

A client hears nothing for two thirds of its session before it gives a connection up, and its last request may
be that old. So after a third more, the session may have expired, and another consumer may own the partitions.

No zombie: partitions are claimed only between `start` and `close`, and their fetching begins with the claim.
"""

from collections import deque

from kelpie.zookeeper.attempt import RebalanceError, rebalance
from kelpie.zookeeper.effects import EndSession, PartitionsLost, RebalanceFailure
from kelpie.zookeeper.member import Member
from kelpie.zookeeper.nodes import BROKERS, TOPICS, topic_path
from kelpie.zookeeper.procedures import Procedure, Until
from kelpie.zookeeper.requests import Children, Node, Read
from kelpie.zookeeper.steps import (
    Cause,
    Closed,
    Closing,
    OwnershipDoubted,
    RebalanceFailed,
    Recovering,
    SessionExpired,
)


class _SessionEnded(Exception):
    """Interrupts procedures whose requests belong to a session that is gone."""


class RecoveringThreads:
    def __init__(self, member: Member) -> None:
        self._member = member
        self._fired: deque[str] = deque()
        self._failures = 0

    # Events.

    def start(self) -> None:
        procedures = self._member.procedures
        procedures.begin("life", self._live())
        procedures.begin("events", self._handle_events())
        if self._member.config.auto_commit_enable:
            procedures.begin("committer", self._commit_regularly())

    def watch_fired(self, path: str) -> None:
        self._fired.append(path)

    def disconnected(self) -> None:
        self._member.procedures.begin("doubt", self._doubt())

    def session_expired(self) -> None:
        member = self._member
        member.record(SessionExpired())
        member.forget_requests()
        self._fired.clear()
        member.due = None
        if member.is_fetching:
            member.stop_fetching()
        member.lose_ownership()
        for name in ("life", "events", "committer", "commit", "close"):
            member.procedures.interrupt(name, _SessionEnded())

    def connected(self, *, is_new: bool) -> None:
        member = self._member
        if not is_new:
            member.ask_again()
            if not member.may_commit:
                member.trigger(Cause.CONNECTION)

    def close(self) -> None:
        self._member.procedures.begin("close", self._close())

    # The life of a member.

    def _live(self) -> Procedure[None]:
        member = self._member
        cause = Cause.START
        while not member.is_closing:
            try:
                yield Until(lambda: member.is_connected or member.is_closing)
                yield from self._take_part(cause)
            except RebalanceError as failed:
                try:
                    cause = yield from self._recover(failed)
                except _SessionEnded:
                    cause = Cause.SESSION
            except _SessionEnded:
                cause = Cause.SESSION

    def _take_part(self, cause: Cause) -> Procedure[None]:
        member = self._member
        if member.is_closing:
            return
        yield from member.register()
        yield from member.choose_topics(watch=True)
        yield (Children(member.paths.ids, watch=True),)
        while not member.is_closing:
            yield from rebalance(member, cause, lambda: member.obstacle_is_gone or member.is_closing)
            self._failures = 0
            yield Until(lambda: member.due is not None or member.is_closing)
            cause = member.due or cause

    def _recover(self, failed: RebalanceError) -> Procedure[Cause]:
        """Wait, then leave and come back: the others look at the group again. A change shortens the wait."""
        member, config = self._member, self._member.config
        most_ms = min(config.recovery_backoff_max_ms, config.recovery_backoff_ms << min(self._failures, 20))
        wait_ms = most_ms // 2 + member.draw(most_ms // 2 + 1)
        self._failures += 1
        member.record(RebalanceFailed(failed.cause, failed.attempts, is_told=True))
        member.tell(RebalanceFailure(member.consumer_id, failed.cause, failed.attempts, wait_ms))
        member.record(Recovering(wait_ms))
        yield Until(lambda: member.due is not None or member.is_closing, member.now + wait_ms)
        if member.due is not None or member.is_closing:
            return member.due or failed.cause
        yield from member.release()
        yield from member.unregister()
        return Cause.RECOVERY

    # Watches.

    def _handle_events(self) -> Procedure[None]:
        while True:
            try:
                yield Until(lambda: bool(self._fired))
                yield from self._handle(self._fired.popleft())
            except _SessionEnded:
                continue

    def _handle(self, path: str) -> Procedure[None]:
        member = self._member
        if path in (member.paths.ids, BROKERS):
            yield (Children(path, watch=True),)
            member.trigger(Cause.MEMBERS if path == member.paths.ids else Cause.BROKERS)
        elif path == TOPICS:
            if (yield from member.choose_topics(watch=True)):
                member.trigger(Cause.TOPICS)
        elif path in {topic_path(topic) for topic in member.own_threads()}:
            (node,) = yield (Read(path, watch=True),)
            member.trigger(Cause.PARTITIONS, path, node.value if isinstance(node, Node) else b"")
        elif member.paths.is_owner(path):
            member.obstacle_is_gone = True

    # The connection.

    def _doubt(self) -> Procedure[None]:
        """While ZooKeeper is away: until when the partitions are surely this consumer's."""
        member = self._member
        yield Until(lambda: member.is_connected, member.now + member.config.session_timeout_ms // 3)
        if member.is_connected or not member.is_fetching or member.is_closing:
            return
        partitions = tuple(sorted(member.owned))
        member.record(OwnershipDoubted(partitions))
        member.stop_fetching()
        member.may_commit = False
        if partitions:
            member.tell(PartitionsLost(partitions))

    # Commits, and the end.

    def _commit_regularly(self) -> Procedure[None]:
        member = self._member
        while not member.is_closing:
            try:
                yield Until(lambda: member.is_closing, member.now + member.config.auto_commit_interval_ms)
                if not member.is_closing and not member.is_rebalancing:
                    yield from member.commit()
            except _SessionEnded:
                continue

    def _close(self) -> Procedure[None]:
        """Commits if ZooKeeper can be asked. Without a connection the session ends by itself."""
        member = self._member
        began = member.now
        member.is_closing = True
        member.record(Closing())
        try:
            yield Until(lambda: not member.is_rebalancing or not member.is_connected)
            if member.is_fetching:
                member.stop_fetching()
            if member.config.auto_commit_enable and member.is_connected:
                yield from member.commit()
        except _SessionEnded:
            pass
        member.do(EndSession())
        member.record(Closed(member.now - began))
