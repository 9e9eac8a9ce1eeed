"""One replica of one partition on one broker: its log, its role, and what the leader knows of its followers.

A leader's high watermark is the lowest end among the in-sync replicas. It never falls within an epoch, and
since Kafka 3.7 it stands still while fewer than min.insync.replicas are in sync (KIP-966).
Calls that wait until a record is committed (acks=all, a coordinator's write) wait here for the high
watermark.

Followers fetch: the fabric lets them pull from the leader when there is something new and the two can reach
each other. A new follower first cuts off what the leader of its last epoch does not have (KIP-101).
"""

import heapq
import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass

from kelpie.broker import elections
from kelpie.broker.image import PartitionImage
from kelpie.broker.log import LogConfig, ReplicaLog
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.schema import NO_UUID

Committed = Callable[[Instant], None]
Lost = Callable[[ErrorCode, Instant], None]


@dataclass(slots=True)
class Follower:
    """What a leader knows of one follower."""

    end_offset: int
    caught_up_at: Instant
    start_offset: int = 0


class Replica:
    def __init__(
        self,
        partition: TopicPartition,
        node_id: int,
        topic_id: bytes = NO_UUID,
        *,
        least_in_sync: Callable[[], int] = lambda: 1,
        knows_epochs: bool = True,
    ) -> None:
        self.partition = partition
        self.node_id = node_id
        self.topic_id = topic_id
        """A topic of the same name that was created anew is another one."""
        self._least_in_sync = least_in_sync
        self._knows_epochs = knows_epochs
        self.epoch_start_offset = 0
        """Where the log ended when this replica began to lead."""
        self.log = ReplicaLog(partition)
        self.high_watermark = 0
        self.state: PartitionImage | None = None
        self.followers: dict[int, Follower] = {}
        self._aligned = False
        self._waiting: list[tuple[int, int, Committed, Lost]] = []
        self._serial = itertools.count()

    @property
    def leads(self) -> bool:
        return self.state is not None and self.state.leader == self.node_id

    @property
    def leader_epoch(self) -> int:
        return -1 if self.state is None else self.state.leader_epoch

    def apply(self, state: PartitionImage, now: Instant) -> None:
        """The image changed. What a former leader's clients waited for is lost to them."""
        led, epoch = self.leads, self.leader_epoch
        self.state = state
        if state.leader_epoch != epoch:
            self._aligned = False
            if led and not self.leads:
                self._give_up(ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
            if self.leads:
                self._begin_to_lead()
        if self.leads:
            self.followers = {
                node: self.followers.get(node) or Follower(-1, now)
                for node in state.replicas
                if node != self.node_id
            }
            self.advance(now)

    def _begin_to_lead(self) -> None:
        if self._knows_epochs:
            self.log.begin_epoch(self.leader_epoch)
        self.epoch_start_offset = self.log.end_offset
        self.followers = {}

    def forget(self, code: ErrorCode, now: Instant) -> None:
        """The topic is deleted, or this replica moved away."""
        self._give_up(code, now)
        self.state = None

    def resigned(self) -> None:
        """The broker died: no call waits any more, and the replica has no role until the next image."""
        self._waiting.clear()
        self.followers.clear()
        self.state = None
        self._aligned = False

    # As a leader

    def enough_in_sync(self, least: int) -> bool:
        return self.state is not None and len(self.state.isr) >= least

    def when_committed(self, offset: int, committed: Committed, lost: Lost, now: Instant) -> None:
        """Calls `committed` once the high watermark has reached `offset`, `lost` when it cannot any more."""
        if self.high_watermark >= offset:
            committed(now)
        else:
            heapq.heappush(self._waiting, (offset, next(self._serial), committed, lost))

    def advance(self, now: Instant) -> bool:
        """Moves the high watermark up to what all in-sync replicas have. Says whether it moved."""
        assert self.state is not None
        replicas = len(self.state.replicas)
        if len(self.state.isr) < replicas and not self.enough_in_sync(min(self._least_in_sync(), replicas)):
            return False
        ends = [self.followers[node].end_offset for node in self.state.isr if node in self.followers]
        reached = min([self.log.end_offset, *ends])
        if reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        while self._waiting and self._waiting[0][0] <= reached:
            heapq.heappop(self._waiting)[2](now)
        return True

    def fetched_by(self, node: int, log: ReplicaLog, now: Instant) -> None:
        follower = self.followers.get(node)
        if follower is None:
            return
        follower.end_offset, follower.start_offset = log.end_offset, log.start_offset
        if log.end_offset >= self.log.end_offset:
            follower.caught_up_at = now

    def still_fetches(self, node: int, now: Instant) -> None:
        """Nothing was new for a follower up to now: it has not begun to lag."""
        follower = self.followers.get(node)
        if follower is not None:
            follower.caught_up_at = now

    def in_sync(self, now: Instant, lag_limit_ms: int, fetching: Collection[int]) -> tuple[int, ...]:
        """The replicas that the leader wants in the ISR. Only replicas that fetch can join it."""
        assert self.state is not None
        members = set(self.state.isr)
        for node, follower in self.followers.items():
            behind = follower.end_offset < self.log.end_offset
            if node in members:
                if behind and now - follower.caught_up_at > lag_limit_ms:
                    members.discard(node)
            elif node in fetching and not behind:
                members.add(node)
        members.add(self.node_id)
        return elections.ordered(self.state, members)

    def low_watermark(self, alive: Collection[int]) -> int:
        """Where all living replicas begin at the latest; what is before is gone everywhere."""
        starts = [follower.start_offset for node, follower in self.followers.items() if node in alive]
        return min([self.log.start_offset, *starts])

    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.high_watermark)

    # As a follower

    def pull(self, leader: "Replica", config: LogConfig, now: Instant) -> None:
        """One fetch from the leader, of all that is there."""
        if not self._aligned:
            self._align(leader)
        log, theirs = self.log, leader.log
        if log.end_offset < theirs.start_offset:
            log.reset_to(theirs.start_offset)
        if log.end_offset < theirs.end_offset:
            log.append_as_follower(
                theirs.batches_from(log.end_offset), now=now, config=config, leader_epoch=self.leader_epoch
            )
        if log.start_offset < theirs.start_offset:
            log.delete_before(theirs.start_offset)
        leader.fetched_by(self.node_id, log, now)
        self.high_watermark = max(self.high_watermark, min(leader.high_watermark, log.end_offset))

    def _align(self, leader: "Replica") -> None:
        """Cuts off what the leader does not have, epoch by epoch from the last one down (KIP-101)."""
        if self.log.last_epoch >= 0:
            end = leader.log.end_offset_for_epoch(self.log.last_epoch)
            while not self.log.truncate_to_epoch(
                end.epoch, end.end_offset, high_watermark=self.high_watermark
            ):
                end = leader.log.end_offset_for_epoch(self.log.last_epoch)
        else:
            # Before Kafka 0.11 there are no epochs: what was committed is taken for the leader's too. After
            # an unclean election it need not be, and the logs stay different (KAFKA-1211).
            self.log.truncate_to(min(self.high_watermark, leader.log.end_offset))
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        self._aligned = True

    def _give_up(self, code: ErrorCode, now: Instant) -> None:
        waiting, self._waiting = self._waiting, []
        for _, _, _, lost in waiting:
            lost(code, now)
