"""What a broker tells the plan of attribution, and which answers wait for the mapping store."""

from collections import deque
from collections.abc import Iterable
from typing import Any

import pytest

from kelpie.attribution.addresses import ClientAddress
from kelpie.attribution.counters import Amount, Counters
from kelpie.attribution.plan import Assignment, Connection, Plan, Removal
from kelpie.attribution.requests import Put, Request, Result
from kelpie.broker.call import ClientConnection
from kelpie.broker.traffic import ANSWER_LIMIT_MS, Traffic
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.fetch import FetchRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.leave_group import LeaveGroupRequest
from tests.broker.clients import (
    fetch_request,
    heartbeat,
    join,
    produced,
    sync,
)
from tests.broker.driver import Cluster, Sent

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
APP = ClientAddress("127.0.0.1", "client")
QUICK = {"group.initial.rebalance.delay.ms": "0"}


class Spy(Plan):
    """Notes each event, and asks the store one thing for each that a client waits for."""

    def __init__(self, broker: int, events: list[tuple[Any, ...]]) -> None:
        super().__init__(broker, 0, Counters())
        self.events = events

    def _note(self, *event: Any) -> list[Request]:
        self.events.append((self.broker, *event))
        return [Put(self.broker, f"/{event[0]}", b"")]

    def coordinator_found(
        self, connection: Connection, client: ClientAddress, group: str, now: Instant
    ) -> list[Request]:
        return self._note("found", client, group)

    def member_joined(
        self, connection: Connection, client: ClientAddress, member_id: str, group: str, now: Instant
    ) -> list[Request]:
        return self._note("joined", client, member_id, group)

    def assignment_made(self, group: str, assignment: Assignment, now: Instant) -> list[Request]:
        return self._note("assigned", group, {name: set(one.partitions) for name, one in assignment.items()})

    def member_removed(
        self, group: str, member_id: str, client: ClientAddress, reason: Removal, now: Instant
    ) -> list[Request]:
        return self._note("removed", member_id, client, reason)

    def connection_closed(self, connection: Connection, now: Instant) -> list[Request]:
        return self._note("closed", connection)

    def group_loaded(self, group: str, members: Assignment, epoch: int, now: Instant) -> list[Request]:
        return self._note(
            "loaded", group, {name: set(one.partitions) for name, one in members.items()}, epoch
        )

    def group_unloaded(self, group: str, now: Instant) -> list[Request]:
        return self._note("unloaded", group)

    def shutting_down(self, now: Instant) -> list[Request]:
        return self._note("shutting down")

    def fetched(
        self,
        connection: Connection,
        client: ClientAddress,
        partition: TopicPartition,
        amount: Amount,
        now: Instant,
    ) -> list[Request]:
        self.events.append((self.broker, "fetched", client, partition, amount.messages))
        return []

    def answered(self, request: Request, result: Result, now: Instant) -> list[Request]:
        self.events.append((self.broker, "answered", request.path))
        return []


class Counting:
    """A cluster whose brokers tell spies, and a store that answers when it is told to."""

    def __init__(self, persona: str = "4.3", **settings: str) -> None:
        self.cluster = Cluster(3, persona, {**QUICK, **settings})
        self.events: list[tuple[Any, ...]] = []
        self.asked: dict[int, deque[Request]] = {}
        self.traffic: dict[int, Traffic] = {}
        for node in (1, 2, 3):
            self.count(node)

    def count(self, node: int) -> None:
        broker, asked = self.cluster.fabric.broker(node), deque[Request]()
        self.asked[node] = asked
        traffic = Traffic(Spy(node, self.events), broker.timers, asked.append, self.cluster.now)
        self.traffic[node] = broker.traffic = traffic

    def answer(self, *nodes: int) -> None:
        """The store answers all that these brokers, or all brokers, have asked."""
        for node in nodes or self.asked:
            while self.asked[node]:
                self.traffic[node].answered(self.asked[node].popleft(), None, self.cluster.now)

    def told(self, kind: str) -> list[tuple[Any, ...]]:
        """Events of one kind, without broker and kind."""
        return [event[2:] for event in self.events if event[1] == kind]

    def two_members(self) -> tuple[int, str, str]:
        """A stable group of two: its coordinator, the leader, the other member."""
        node = coordinator_of(self)
        first = join(self.cluster, node, "g")
        self.cluster.advance(10)
        self.answer()
        leader = first.answer.member_id
        second = join(self.cluster, node, "g")
        rejoined = join(self.cluster, node, "g", leader)
        self.answer()
        other = second.answer.member_id
        generation = rejoined.answer.generation_id
        sync(self.cluster, node, "g", generation, leader, assignments={leader: [P0], other: [P1]})
        sync(self.cluster, node, "g", generation, other)
        self.answer()
        return node, leader, other


def coordinator_of(counting: Counting, group: str = "g") -> int:
    """Answers of the store included."""
    for _ in range(3):
        sent = counting.cluster.send(1, FindCoordinatorRequest(key=group), 1)
        counting.answer()
        if sent.answer.error_code == ErrorCode.NONE:
            return int(sent.answer.node_id)
        counting.cluster.advance(100)
    raise AssertionError("there is no coordinator")


def _all_wait(sent: Iterable[Sent]) -> bool:
    return all(one.waits for one in sent)


def test_find_coordinator_is_answered_when_the_store_has_answered() -> None:
    """As in KoP: the mapping is there before the consumer goes on."""
    counting = Counting()
    coordinator_of(counting)
    sent = counting.cluster.send(2, FindCoordinatorRequest(key="g"), 1)
    assert sent.waits
    assert counting.told("found")[-1] == (APP, "g")
    counting.answer(2)
    assert sent.answer.error_code == ErrorCode.NONE


def test_a_store_that_does_not_answer_does_not_hold_clients_for_ever() -> None:
    """After a time limit the answer leaves, once, also when the store answers later."""
    counting = Counting()
    coordinator_of(counting)
    sent = counting.cluster.send(2, FindCoordinatorRequest(key="g"), 1)
    counting.cluster.advance(ANSWER_LIMIT_MS - 1)
    assert sent.waits
    counting.cluster.advance(1)
    assert sent.answer.error_code == ErrorCode.NONE
    counting.answer(2)
    assert len(sent.answers) == 1


def test_transactional_ids_are_not_told() -> None:
    """A producer's coordinator has nothing to do with groups."""
    counting = Counting()
    counting.cluster.send(2, FindCoordinatorRequest(key="tx", key_type=1), 1)
    assert not counting.told("found")


def test_a_member_without_an_id_has_not_joined_yet() -> None:
    """It is told to come back with one (KIP-394), and is told to the plan then."""
    counting = Counting()
    node = coordinator_of(counting)
    required = join(counting.cluster, node, "g", version=5)
    assert required.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert not counting.told("joined")
    join(counting.cluster, node, "g", required.answer.member_id, version=5)
    assert counting.told("joined") == [(APP, required.answer.member_id, "g")]
    assert counting.told("loaded")[-1][:2] == ("g", {}), "the group is new here"


def test_join_group_waits_for_the_store_and_for_the_rebalance() -> None:
    """Whichever ends last."""
    counting = Counting()
    node = coordinator_of(counting)
    sent = join(counting.cluster, node, "g")
    counting.cluster.advance(10)
    assert sent.waits, "the rebalance is over, the store has not answered"
    counting.answer()
    assert sent.answer.error_code == ErrorCode.NONE


def test_all_sync_groups_wait_until_the_store_knows_the_assignment() -> None:
    """A follower must not read a partition that its node excludes."""
    counting = Counting()
    node, leader, other = counting.two_members()
    rejoining = [join(counting.cluster, node, "g", member) for member in (leader, other)]
    counting.answer()
    generation = rejoining[0].answer.generation_id
    follower = sync(counting.cluster, node, "g", generation, other)
    syncs = [
        follower,
        sync(counting.cluster, node, "g", generation, leader, assignments={leader: [P1], other: [P0]}),
    ]
    assert _all_wait(syncs)
    assert counting.told("assigned")[-1] == ("g", {leader: {P1}, other: {P0}})
    late = sync(counting.cluster, node, "g", generation, other)
    assert late.waits, "the group is stable, and the store does not know it yet"
    refused = sync(counting.cluster, node, "g", generation, "stranger")
    assert refused.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    counting.answer()
    assert [one.answer.error_code for one in (*syncs, late)] == [ErrorCode.NONE] * 3


def test_each_way_out_of_a_group_has_its_reason() -> None:
    """A member leaves; a session expires; a member does not join again."""
    counting = Counting()
    node, leader, other = counting.two_members()
    counting.cluster.ask(node, LeaveGroupRequest(group_id="g", member_id=other), 2)
    assert counting.told("removed") == [(other, APP, Removal.LEFT)]
    counting.cluster.advance(10_001)
    assert counting.told("removed")[1:] == [(leader, APP, Removal.EXPIRED)]

    counting = Counting()
    node, leader, other = counting.two_members()
    rejoined = join(counting.cluster, node, "g", leader)
    counting.cluster.advance(9_000)
    assert heartbeat(counting.cluster, node, "g", 2, other) == ErrorCode.REBALANCE_IN_PROGRESS
    counting.cluster.advance(1_001)
    assert rejoined.answer.error_code == ErrorCode.NONE
    assert counting.told("removed") == [(other, APP, Removal.NOT_REJOINED)]


def test_a_static_member_that_comes_again_replaces_itself() -> None:
    """Without a rebalance: its partitions are told with its next SyncGroup."""
    counting = Counting()
    node = coordinator_of(counting)
    first = join(counting.cluster, node, "g", version=5, instance="i")
    counting.cluster.advance(10)
    counting.answer()
    old = first.answer.member_id
    sync(counting.cluster, node, "g", 1, old, assignments={old: [P0]})
    counting.answer()
    again = join(counting.cluster, node, "g", version=5, instance="i")
    counting.answer()
    new = again.answer.member_id
    assert counting.told("removed") == [(old, APP, Removal.REPLACED)]
    answer = sync(counting.cluster, node, "g", 1, new)
    assert counting.told("assigned")[-1] == ("g", {new: {P0}})
    counting.answer()
    assert answer.answer.error_code == ErrorCode.NONE


def test_a_group_that_moves_is_unloaded_and_loaded() -> None:
    """The new coordinator has the members from its log, and a larger epoch."""
    counting = Counting()
    node, leader, other = counting.two_members()
    counting.cluster.fabric.stop(node, counting.cluster.now)
    assert counting.events.index((node, "shutting down")) < counting.events.index((node, "unloaded", "g"))
    (first,) = [event for event in counting.events if event[:3] == (node, "loaded", "g")]
    (moved,) = [event for event in counting.events if event[1:3] == ("loaded", "g") and event[0] != node]
    assert moved[3] == {leader: {P0}, other: {P1}}
    assert moved[4] > first[4]


def test_what_waits_for_the_store_is_answered_by_a_broker_that_stops() -> None:
    """Its clients need not run into a timeout."""
    counting = Counting()
    coordinator_of(counting)
    sent = counting.cluster.send(2, FindCoordinatorRequest(key="g"), 1)
    counting.cluster.fabric.stop(2, counting.cluster.now)
    assert sent.answer.error_code == ErrorCode.NONE


def test_a_broker_that_is_killed_tells_nothing() -> None:
    """Neither that it ends, nor what it coordinated."""
    counting = Counting()
    node, _, _ = counting.two_members()
    before = len(counting.events)
    counting.traffic[node].end()
    counting.cluster.fabric.kill(node, counting.cluster.now)
    counting.traffic[node].connection_closed(ClientConnection(), counting.cluster.now)
    counting.answer()
    assert [event for event in counting.events[before:] if event[0] == node] == []


def _fetch(counting: Counting, offset: int, connection: ClientConnection | None = None) -> Sent:
    request: FetchRequest = fetch_request((P0, offset), max_wait_ms=500)
    return counting.cluster.send(counting.cluster.leader(P0), request, 11, connection=connection)


@pytest.fixture
def counting() -> Counting:
    counting = Counting()
    counting.cluster.create("orders", 1)
    return counting


def test_a_fetch_is_told_when_it_is_answered_with_messages(counting: Counting) -> None:
    """One that waits is told when it is over; one without messages is not."""
    assert _fetch(counting, 0).waits
    assert not counting.told("fetched")
    produced(counting.cluster, P0, b"a", b"b", b"c")
    assert counting.told("fetched") == [(APP, P0, 3)]
    _fetch(counting, 1)
    assert counting.told("fetched")[1:] == [(APP, P0, 2)], "it asked from the second message on"
    _fetch(counting, 3)
    counting.cluster.advance(500)
    assert len(counting.told("fetched")) == 2


def test_a_fetch_whose_client_is_gone_does_not_count(counting: Counting) -> None:
    """It waited when the connection closed, and its answer goes nowhere."""
    connection = ClientConnection()
    _fetch(counting, 0, connection)
    counting.traffic[counting.cluster.leader(P0)].connection_closed(connection, counting.cluster.now)
    produced(counting.cluster, P0, b"a")
    assert not counting.told("fetched")


def test_what_producers_write_is_counted(counting: Counting) -> None:
    """By partition; internal topics are not traffic."""
    counting.two_members()
    produced(counting.cluster, P0, b"a", b"b")
    produced(counting.cluster, P0, b"c")
    received = counting.traffic[counting.cluster.leader(P0)].received
    assert {partition: amount.messages for partition, amount in received.items()} == {P0: 3}
    assert received[P0].entries == 2
