"""Carries out what a group shard decides, on a log in memory and a clock that only tests move.

It is the broker in small: it appends records, lets the high watermark pass them (at once, or when told),
replays them, runs callbacks, keeps timers. It also keeps watch, after every step:

- a call is answered once, and is either answered, abandoned as in Kafka, or still parked;
- the log, replayed into a fresh shard, gives the same offsets, pending transactions and settled groups;
- within a generation no partition has two owners.
"""

import itertools
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from kelpie.coordinator.classic.group import ClassicGroup, find_group
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.outcome import CoordinatorRecord, Outcome
from kelpie.coordinator.release_behaviour import BEHAVIOUR_4_3, GroupBehaviour
from kelpie.coordinator.shard import GroupShard
from kelpie.errors import ErrorCode
from kelpie.wire.consumer_protocol import decode_assignment
from kelpie.wire.offsets_topic import RecordType, decode_key

START = 1_700_000_000_000
COMMIT, ABORT = True, False


@dataclass(eq=False)
class Call:
    """A request on its way; `answer` is None while it waits."""

    name: str
    answers: list[Any] = field(default_factory=list)
    abandoned: bool = False

    @property
    def answer(self) -> Any:
        assert self.answers, f"{self.name} waits"
        return self.answers[0]

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.answer.error_code)

    @property
    def waits(self) -> bool:
        return not self.answers and not self.abandoned


@dataclass
class Logged:
    """One record of the log, or the marker that ends a transaction."""

    record: CoordinatorRecord | None
    producer_id: int = -1
    committed: bool | None = None


class Driver:
    def __init__(self, behaviour: GroupBehaviour = BEHAVIOUR_4_3, config: GroupConfig | None = None) -> None:
        self.behaviour = behaviour
        self.config = config or GroupConfig()
        self.now = START
        self.ids = itertools.count(1)
        self.log: list[Logged] = []
        self.waiting: list[tuple[int, Outcome]] = []
        """Writes behind which the high watermark still is, with their first offset."""
        self.held = False
        self.late = False
        """Somebody was told that a write took too long."""
        self.broken: ErrorCode | None = None
        self.timers: dict[Hashable, int] = {}
        self.calls: list[Call] = []
        self.settled: dict[str, Any] = {}
        """Groups as they were when last they were at rest and written."""
        self.unsure: set[str] = set()
        """Groups of which a record could not be written: memory is ahead of the log."""
        self.shard = self.new_shard()
        self.carry_out(self.shard.loaded(self.now))

    def new_shard(self) -> GroupShard:
        return GroupShard(self.config, self.behaviour, lambda: f"uuid-{next(self.ids)}")

    # Requests.

    def ask(self, method: str, *args: Any) -> Call:
        """Calls the shard with a new token before, and the time behind, the arguments."""
        call = Call(method)
        self.calls.append(call)
        self.carry_out(getattr(self.shard, method)(call, *args, self.now))
        self.check()
        return call

    def tell(self, method: str, *args: Any) -> None:
        self.carry_out(getattr(self.shard, method)(*args, self.now))
        self.check()

    # The log.

    def hold(self) -> None:
        """From now on nothing is replicated."""
        self.held = True

    def release(self) -> None:
        """The high watermark reaches the end of the log."""
        self.held = self.late = False
        while self.waiting:
            first, outcome = self.waiting.pop(0)
            self._committed(first, outcome)
        self.check()

    def fail(self, error: ErrorCode) -> None:
        """What is not replicated never will be: it is cut off the log."""
        assert not self.late or self.shard.state.unloaded, "only a new leader cuts off what others hope for"
        self._cut_off(error)
        self.check()

    def _cut_off(self, error: ErrorCode) -> None:
        self.held = self.late = False
        waiting, self.waiting = self.waiting, []
        if waiting:
            del self.log[waiting[0][0] :]
        for _, outcome in waiting:
            self._failed(outcome, error)

    def time_out(self) -> None:
        """Whoever waits for a write gives up; it may still be replicated."""
        for index, (first, outcome) in enumerate(self.waiting):
            if outcome.failed is not None:
                self.carry_out(outcome.failed(ErrorCode.REQUEST_TIMED_OUT, self.now))
            records_only = Outcome(records=outcome.records, producer=outcome.producer)
            self.waiting[index] = (first, records_only)
        self.late = bool(self.waiting)
        self.check()

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        assert not self.waiting, "a marker is written when everything before it is"
        self.log.append(Logged(None, producer_id, committed))
        self.shard.replay_marker(producer_id, committed)
        self.check()

    def carry_out(self, outcome: Outcome) -> None:
        for timer in outcome.timers:
            if timer.at is None:
                self.timers.pop(timer.key, None)
            else:
                self.timers[timer.key] = timer.at
        for to in outcome.abandoned:
            assert to.waits
            to.abandoned = True
        self._answer(outcome.at_once)
        if not outcome.records:
            self._finish(outcome)
        elif self.broken is not None:
            self._failed(outcome, self.broken)
        else:
            first = len(self.log)
            producer_id = outcome.producer[0] if outcome.producer else -1
            self.log += [Logged(record, producer_id) for record in outcome.records]
            if self.held or self.waiting:
                self.waiting.append((first, outcome))
            else:
                self._committed(first, outcome)

    def _committed(self, first: int, outcome: Outcome) -> None:
        producer_id = outcome.producer[0] if outcome.producer else -1
        for index, record in enumerate(outcome.records):
            self.shard.replay(record.key, record.value, offset=first + index, producer_id=producer_id)
        for group_id in _groups_in(outcome, RecordType.GROUP_METADATA):
            self.unsure.discard(group_id)
            self.settled.pop(group_id, None)
        self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        if outcome.written is not None:
            self.carry_out(outcome.written(self.now))
        self._answer(outcome.replies)

    def _failed(self, outcome: Outcome, error: ErrorCode) -> None:
        self.unsure |= _groups_in(outcome, RecordType.GROUP_METADATA, RecordType.OFFSET_COMMIT)
        if outcome.failed is not None:
            self.carry_out(outcome.failed(error, self.now))

    def _answer(self, replies: Any) -> None:
        for reply in replies:
            assert not reply.to.abandoned, f"{reply.to.name} was given up"
            reply.to.answers.append(reply.response)
            assert len(reply.to.answers) == 1, f"{reply.to.name} was answered twice"

    # Time.

    def pass_time(self, ms: int) -> None:
        """Moves the clock, and wakes the shard whenever a timer is due on the way."""
        end = self.now + ms
        while True:
            due = min(self.timers.items(), key=lambda item: item[1], default=None)
            if due is None or due[1] > end:
                break
            key, at = due
            del self.timers[key]
            self.now = max(self.now, at)
            self.tell("timer", key)
        self.now = end

    def run_out(self) -> None:
        """Until nobody's patience is left: only the expiry's timer, which returns for ever."""
        self.release()
        for _ in range(10_000):
            rest = {key: at for key, at in self.timers.items() if key != ("expire",)}
            if not rest:
                return
            self.pass_time(max(min(rest.values()) - self.now, 0))
        raise AssertionError(f"timers without end: {self.timers}")

    # A new coordinator.

    def reloaded(self) -> tuple[GroupShard, Outcome]:
        """A fresh shard with the log that is replicated, and what follows from its loading."""
        shard = self.new_shard()
        end = self.waiting[0][0] if self.waiting else len(self.log)
        for offset, logged in enumerate(self.log[:end]):
            if logged.record is None:
                assert logged.committed is not None
                shard.replay_marker(logged.producer_id, logged.committed)
            else:
                record = logged.record
                shard.replay(record.key, record.value, offset=offset, producer_id=logged.producer_id)
        return shard, shard.loaded(self.now)

    def move(self) -> None:
        """Another broker takes over, with what is replicated."""
        unloaded = self.shard.unloaded()
        self.timers.clear()
        assert not unloaded.records
        self._answer(unloaded.replies)
        self.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.timers.clear()
        self.shard, loaded = self.reloaded()
        self.unsure.clear()
        self.carry_out(loaded)
        self.check()

    # The watch.

    def group(self, group_id: str = "g") -> ClassicGroup:
        return classic_groups(self.shard)[group_id]

    def check(self) -> None:
        state = self.shard.state
        if state.unloaded:
            return
        groups = classic_groups(self.shard)
        for group in groups.values():
            check_group(group)
            written = group.state in (ClassicGroupState.STABLE, ClassicGroupState.EMPTY) and not self.waiting
            if written and group.group_id not in self.unsure:
                self.settled[group.group_id] = durable(group)
        self.settled = {group_id: seen for group_id, seen in self.settled.items() if group_id in state.groups}
        if self.waiting:
            return
        fresh = self.reloaded()[0]
        again, groups_again = fresh.state, classic_groups(fresh)
        assert again.offsets.committed == state.offsets.committed
        assert again.offsets.pending == state.offsets.pending
        for group_id, found in groups_again.items():
            at_rest = found.state in (ClassicGroupState.STABLE, ClassicGroupState.EMPTY)
            if at_rest and group_id in self.settled and group_id not in self.unsure:
                assert durable(found) == self.settled[group_id]
        in_memory_only = [
            group_id
            for group_id, group in groups.items()
            if group_id not in again.groups and group_id not in self.unsure and not group.is_simple
        ]
        if self.behaviour.writes_new_groups:
            assert not in_memory_only
        if not self.unsure:
            assert set(again.groups) <= set(state.groups)

    def check_all_answered(self) -> None:
        waiting = [call.name for call in self.calls if call.waits]
        assert not waiting, f"forgotten: {waiting}"


def classic_groups(shard: GroupShard) -> dict[str, ClassicGroup]:
    return {
        group_id: group for group_id in shard.state.groups if (group := find_group(shard.state, group_id))
    }


def check_group(group: ClassicGroup) -> None:
    """What must hold of a group between two events."""
    members = group.members
    assert group.parked_joins == sum(member.join is not None for member in members.values())
    assert group.static == {m.instance_id: m.member_id for m in members.values() if m.instance_id is not None}
    assert not members.keys() & group.pending.keys()
    assert (group.leader in members) if members else (group.leader is None)
    assert (group.join_deadline is not None) == (group.state is ClassicGroupState.PREPARING_REBALANCE)
    if group.state is not ClassicGroupState.COMPLETING_REBALANCE:
        assert not any(member.sync for member in members.values())
    if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
        assert group.protocol in set.intersection(*(m.protocol_names for m in members.values()))
    if group.state is ClassicGroupState.STABLE:
        owners: dict[tuple[str, int], str] = {}
        for member in members.values():
            _, assignment = decode_assignment(member.assignment)
            for topic in assignment.assigned_partitions:
                for partition in topic.partitions:
                    owner = owners.setdefault((topic.topic, partition), member.member_id)
                    assert owner == member.member_id, f"{owner} and {member.member_id} own {partition}"


def durable(group: ClassicGroup) -> Any:
    """What of a group at rest lies in its record."""
    members = {
        m.member_id: (m.instance_id, m.client_id, m.client_host, m.session_timeout_ms, m.assignment)
        + ((m.metadata(group.protocol),) if group.protocol else ())
        for m in group.members.values()
    }
    return group.generation, group.protocol, group.leader, members, group.protocol_type if members else None


def _groups_in(outcome: Outcome, *types: RecordType) -> set[str]:
    keys = [decode_key(record.key) for record in outcome.records]
    return {key.group for record_type, key in keys if record_type in types}
