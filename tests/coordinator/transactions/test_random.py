"""Random events, with every promise of the coordinator checked as they happen."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.coordinator.transactions import (
    BEHAVIOUR_2_8,
    BEHAVIOUR_4_3,
    Facts,
    TransactionBehaviour,
    TransactionConfig,
    TransactionShard,
)
from kelpie.coordinator.transactions.records import facts_of
from kelpie.coordinator.transactions.transaction import COMPLETION, ENTERED_FROM, NO_EPOCH, NO_ID, PREPARED
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.transaction_state import TransactionState, decode_key, decode_value
from tests.coordinator.transactions.driver import OFFSETS, Driver, Producer, partitions
from tests.coordinator.transactions.logs import log_with

NAMES = ["a-0", "a-1", "b-0"]
IDS = ["new", "worn"]
"""The epochs of the second one are nearly exhausted."""

ids = st.sampled_from(IDS)
holders = st.sampled_from(["held", "held", "held", "stale", "ahead", "foreign"])
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
failures = st.sampled_from(
    [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.MESSAGE_TOO_LARGE]
)
events = st.one_of(
    st.tuples(st.just("init"), ids, st.sampled_from(["fresh", "held", "stale", "foreign"])),
    st.tuples(st.just("add"), ids, holders, some_names),
    st.tuples(st.just("join"), ids, holders, some_names),
    st.tuples(st.just("verify"), ids, holders, some_names),
    st.tuples(st.just("offsets"), ids, holders),
    st.tuples(st.just("end"), ids, holders, st.booleans(), st.booleans()),
    st.tuples(st.just("write")),
    st.tuples(st.just("write")),
    st.tuples(st.just("fail"), failures),
    st.tuples(st.just("mark")),
    st.tuples(st.just("advance"), st.integers(0, 4000)),
    st.tuples(st.just("expire")),
    st.tuples(st.just("reload")),
    st.tuples(st.just("turn"), ids, st.booleans()),
)


class Checked(Driver):
    """A driver that also keeps its own account of who joined what, and how it ended."""

    def __init__(self, behaviour: TransactionBehaviour) -> None:
        log = log_with("worn", producer_id=7, producer_epoch=32765, value_version=behaviour.value_version)
        config = TransactionConfig(abort_interval_ms=1000, expiration_ms=20_000)
        super().__init__(behaviour, config, log)
        self.held: dict[str, list[Producer]] = defaultdict(lambda: [(7, 32765)])
        self.last: dict[str, Facts] = {}
        for record in log:
            self._record(record)
        self.joined: dict[str, set[TopicPartition]] = defaultdict(set)
        self.calls: dict[int, tuple[Any, ...]] = {}
        self.on_record = self._record
        self.on_answer = self._answer

    def producer_of(self, transactional_id: str, holder: str) -> Producer:
        held = self.held[transactional_id]
        producer_id, epoch = held[-1]
        return {
            "fresh": (NO_ID, NO_EPOCH),
            "held": (producer_id, epoch),
            "stale": held[max(0, len(held) - 2)],
            "ahead": (producer_id, min(epoch + 1, 32767)),
            "foreign": (99, 0),
        }[holder]

    def event(self, event: tuple[Any, ...]) -> None:
        match event:
            case ("init", transactional_id, holder):
                producer = self.producer_of(transactional_id, holder)
                self._called(
                    event,
                    producer,
                    lambda: self.init_producer_id(transactional_id, producer=producer, timeout_ms=3000),
                )
            case ("add", transactional_id, holder, names):
                producer = self.producer_of(transactional_id, holder)
                self._called(event, producer, lambda: self.add_partitions(transactional_id, producer, *names))
            case ("join" | "verify" as how, transactional_id, holder, names):
                producer = self.producer_of(transactional_id, holder)
                self._called(
                    event,
                    producer,
                    lambda: self.verify_or_add(
                        transactional_id, producer, *names, verify_only=how == "verify"
                    ),
                )
            case ("offsets", transactional_id, holder):
                producer = self.producer_of(transactional_id, holder)
                self._called(event, producer, lambda: self.add_offsets(transactional_id, producer))
            case ("end", transactional_id, holder, committed, new):
                producer = self.producer_of(transactional_id, holder)
                version = 5 if new and self.behaviour.raises_epoch else 4
                self._called(
                    event,
                    producer,
                    lambda: self.end(transactional_id, producer, committed=committed, version=version),
                )
            case ("turn", transactional_id, committed):
                for each in (
                    ("init", transactional_id, "held" if transactional_id in self.held else "fresh"),
                    ("join", transactional_id, "held", NAMES[:2]),
                    ("end", transactional_id, "held", committed, True),
                ):
                    self.write_all()
                    self.event(each)
                self.settle()
            case ("write",):
                if self.writing:
                    self.write()
            case ("fail", error):
                if self.writing:
                    self.fail(error)
            case ("mark",):
                if self.markers:
                    self.mark()
            case ("advance", ms):
                self.advance(ms)
            case ("expire",):
                self.carry_out(self.shard.expire(self.now))
            case ("reload",):
                self.reload()

    def _called(self, event: tuple[Any, ...], producer: Producer, call: Any) -> None:
        # The answer may come within the call, so it is noted before.
        to = next(self.tokens)
        self.calls[to] = (*event, producer)
        made, self.tokens = self.tokens, iter([to])
        assert call() == to
        self.tokens = made

    def mark(self) -> Any:
        marker = self.markers[0]
        facts = self.last[marker.transactional_id]
        assert set(marker.partitions) == self.joined[marker.transactional_id], "exactly what has joined"
        assert facts.state is (
            TransactionState.PREPARE_COMMIT if marker.committed else TransactionState.PREPARE_ABORT
        )
        assert (marker.producer_id, marker.producer_epoch) == (facts.producer_id, facts.producer_epoch)
        assert marker.coordinator_epoch == self.epoch
        return super().mark()

    def _record(self, record: CoordinatorRecord) -> None:
        transactional_id = decode_key(record.key).transactional_id
        value = decode_value(record.value)
        before = self.last.pop(transactional_id, None)
        if value is None:
            assert before is not None
            assert before.state in ENTERED_FROM[TransactionState.DEAD]
            return
        facts = self.last[transactional_id] = facts_of(value)
        if before is None:
            assert facts.state is TransactionState.EMPTY
            return
        assert before.state in ENTERED_FROM[facts.state]
        if before.state in PREPARED:
            assert facts.state is COMPLETION[before.state], "an end goes one way"
            self.joined[transactional_id].clear()
        if before.producer_id == facts.producer_id:
            assert facts.producer_epoch >= before.producer_epoch, "an epoch never falls"

    def _answer(self, to: int, response: Any) -> None:
        what, transactional_id, *details, producer = self.calls[to]
        if what == "verify":
            for partition, error in response.items():
                assert (error is ErrorCode.NONE) <= (partition in self.joined[transactional_id])
            return
        if self.errors(to) != {ErrorCode.NONE}:
            return
        facts = self.last[transactional_id]
        if what in ("add", "join", "offsets"):
            assert facts.state is TransactionState.ONGOING
            assert producer == (facts.producer_id, facts.producer_epoch), "a zombie joined"
            names = [OFFSETS] if what == "offsets" else partitions(*details[1])
            self.joined[transactional_id].update(names)
        elif what == "end":
            committed = details[1]
            ended = (
                {TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}
                if committed
                else {
                    TransactionState.PREPARE_ABORT,
                    TransactionState.COMPLETE_ABORT,
                }
            )
            assert facts.state in ended, "the client was told the other end"
        if what in ("init", "end") and response.producer_id != NO_ID:
            self.held[transactional_id].append((response.producer_id, response.producer_epoch))

    def rebuilt(self) -> TransactionShard:
        shard = TransactionShard(self.config, self.behaviour, lambda: 0, 0)
        for record in self.log:
            shard.replay(record.key, record.value)
        return shard


def durable(shard: TransactionShard, live: TransactionShard, value_version: int) -> dict[str, Facts]:
    """What the log can know, of ids that are in it."""
    found = {}
    for transactional_id, transaction in shard.transactions.items():
        facts = replace(transaction.facts, last_producer_epoch=NO_EPOCH)
        if value_version == 0:
            facts = replace(facts, previous_producer_id=NO_ID, next_producer_id=NO_ID, client_version=0)
        if live.transactions[transactional_id].fence_failed:
            facts = replace(facts, producer_epoch=NO_EPOCH)  # Raised in memory only.
        elif facts.producer_epoch == NO_EPOCH:
            continue  # Seen, never written.
        found[transactional_id] = facts
    return found


@pytest.mark.parametrize("behaviour", [BEHAVIOUR_2_8, BEHAVIOUR_4_3], ids=["2.8", "4.3"])
@settings(max_examples=300, deadline=None)
@given(happened=st.lists(events, max_size=60))
def test_whatever_happens_the_promises_hold(behaviour: TransactionBehaviour, happened: list[Any]) -> None:
    """One end, the right markers, one answer, and a log that tells it all."""
    driver = Checked(behaviour)
    for event in happened:
        driver.event(event)
    driver.write_all()
    live, rebuilt = driver.shard, driver.rebuilt()
    version = behaviour.value_version
    assert durable(rebuilt, live, version) == durable(live, live, version)

    driver.reload()  # Who was told that it no longer leads does not try again.
    for _ in range(2):  # Late transactions are aborted.
        driver.settle()
        driver.advance(61_000)
    driver.settle()
    assert set(driver.answers) == set(driver.calls)
    for transaction in driver.shard.transactions.values():
        assert transaction.facts.state in ENTERED_FROM[TransactionState.DEAD], (
            "everything that was open has ended"
        )
