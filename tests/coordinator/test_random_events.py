"""Random lists of events: several clients, several groups, a log that stalls and a coordinator that moves.

Clients behave: one call at a time, leaders assign in turn, answers are believed. Now and then they do not:
they forget a call and send another, or use what they no longer are. The driver keeps watch after every event
(see there); here it is seen that nobody owns a partition which somebody else of that generation owns, and
that every call has an end once all patience has run out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kelpie.coordinator.config import CONFIG_0_9, GroupConfig
from kelpie.coordinator.release_behaviour import (
    BEHAVIOUR_0_9,
    BEHAVIOUR_2_8,
    BEHAVIOUR_3_9,
    BEHAVIOUR_4_3,
    GroupBehaviour,
)
from kelpie.errors import ErrorCode
from kelpie.wire.consumer_protocol import decode_assignment
from tests.coordinator.clients import SESSION_MS, TOPIC, Group, assigned_by, subscription
from tests.coordinator.driver import Call, Driver

NEWEST_JOIN = {"0.9.0.1": 0, "2.8": 7, "3.9": 9, "4.3": 9}
OFFERS = [
    (("range", subscription(TOPIC)),),
    (("range", subscription(TOPIC)), ("roundrobin", subscription(TOPIC))),
    (("roundrobin", subscription(TOPIC, "payments")), ("range", subscription(TOPIC, "payments"))),
]
CLIENTS = st.integers(0, 5)
GROUPS = ["g", "h"]


@dataclass
class Client:
    """What a consumer knows of itself."""

    group: Group
    version: int
    instance: str | None = None
    member_id: str = ""
    generation: int = -1
    leader: str = ""
    assigning: dict[str, bytes] | None = None
    next: str = "join"
    """What it would do, if it did right."""
    call: Call | None = None

    @property
    def busy(self) -> bool:
        return self.call is not None and self.call.waits

    @property
    def owner(self) -> str:
        return self.instance or self.member_id


class Groups(RuleBasedStateMachine):
    behaviour: GroupBehaviour = BEHAVIOUR_4_3

    @initialize(delay_ms=st.sampled_from([0, 3_000]), max_size=st.sampled_from([2, 100]))
    def begin(self, delay_ms: int, max_size: int) -> None:
        base = CONFIG_0_9 if self.behaviour is BEHAVIOUR_0_9 else GroupConfig()
        settings_given = {
            "group.initial.rebalance.delay.ms": str(delay_ms),
            "group.max.size": str(2**31 - 1 if self.behaviour is BEHAVIOUR_0_9 else max_size),
        }
        self.driver = Driver(self.behaviour, GroupConfig.of(settings_given, base))
        newest = NEWEST_JOIN[self.behaviour.release]
        self.clients = [
            Client(Group(self.driver, GROUPS[index % 2]), newest if index < 4 else min(newest, 3))
            for index in range(6)
        ]
        if newest >= 5:
            self.clients[0].instance = "i"
            self.clients[2].instance = "j"
        self.owners: dict[tuple[str, int, str, int], str] = {}
        self.expected: list[tuple[Call, Callable[[], None]]] = []

    # Members.

    @rule(which=CLIENTS, offer=st.sampled_from(OFFERS))
    def join(self, which: int, offer: tuple[tuple[str, bytes], ...]) -> None:
        client = self.clients[which]
        if client.busy:
            return
        call = client.group.join(
            client.member_id,
            version=client.version,
            instance=client.instance,
            protocols=offer,
            rebalance_ms=20_000,
        )
        self._expect(client, call, lambda: self._joined(client, call))

    def _joined(self, client: Client, call: Call) -> None:
        answer = call.answer
        client.assigning, client.next = None, "join"
        if call.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif call.error is ErrorCode.NONE:
            client.member_id, client.generation = answer.member_id, answer.generation_id
            client.leader, client.next = answer.leader, "sync"
            if answer.leader == answer.member_id and not answer.skip_assignment:
                client.assigning = assigned_by(answer)
        elif call.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id, client.generation = "", -1

    @rule(which=CLIENTS)
    def sync(self, which: int) -> None:
        client = self.clients[which]
        if client.busy or not client.member_id:
            return
        generation, leader, owner = client.generation, client.leader, client.owner
        call = client.group.sync(
            client.member_id, generation, client.assigning or {}, instance=client.instance
        )

        def synced() -> None:
            client.next = "join"
            if call.error is ErrorCode.NONE:
                client.next = "heartbeat"
                self._own(client.group.group_id, generation, leader, owner, call.answer.assignment)

        self._expect(client, call, synced)

    def _own(self, group_id: str, generation: int, leader: str, owner: str, assigned: bytes) -> None:
        for topic in decode_assignment(assigned)[1].assigned_partitions:
            for partition in topic.partitions:
                known = self.owners.setdefault((group_id, generation, leader, partition), owner)
                assert known == owner, f"{known} and {owner} own {partition} in generation {generation}"

    @rule(which=CLIENTS, older=st.integers(0, 1))
    def heartbeat(self, which: int, older: int) -> None:
        client = self.clients[which]
        if client.busy:
            return
        error = client.group.heartbeat(
            client.member_id or "stranger", client.generation - older, client.instance
        )
        if error is not ErrorCode.NONE:
            client.next = "join"
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id = ""

    @rule(which=CLIENTS)
    def leave(self, which: int) -> None:
        client = self.clients[which]
        if client.busy or not client.member_id:
            return
        version = 0 if self.behaviour is BEHAVIOUR_0_9 else 5
        call = client.group.leave(client.member_id, version=version)
        self._expect(client, call, lambda: None)

    @rule(name=st.sampled_from("ij"), group_id=st.sampled_from(GROUPS))
    @precondition(lambda self: self.behaviour is not BEHAVIOUR_0_9)
    def remove_static(self, name: str, group_id: str) -> None:
        Group(self.driver, group_id).leave(instances=[name])

    @rule(which=CLIENTS, keeps_id=st.booleans())
    def restart(self, which: int, keeps_id: bool) -> None:
        """It gives up the call that it waits for."""
        client = self.clients[which]
        client.call, client.next = None, "join"
        if not keeps_id:
            client.member_id, client.generation, client.assigning = "", -1, None

    @rule(group_id=st.sampled_from(GROUPS), count=st.integers(1, 3), rounds=st.integers(1, 6))
    def live(self, group_id: str, count: int, rounds: int) -> None:
        """So many clients of a group do what is right for a while, so that something comes of it."""
        mine = [which for which in range(6) if self.clients[which].group.group_id == group_id][:count]
        for _ in range(rounds):
            for which in mine:
                step = self.clients[which].next
                if step == "join":
                    self.join(which, OFFERS[1])
                elif step == "sync":
                    self.sync(which)
                else:
                    self.heartbeat(which, 0)
                self.believe_answers()
            self.driver.pass_time(1_500)
            self.believe_answers()

    # Offsets.

    @rule(
        which=CLIENTS,
        offset=st.integers(0, 9),
        as_member=st.booleans(),
        retention=st.sampled_from([-1, 5_000]),
    )
    def commit(self, which: int, offset: int, as_member: bool, retention: int) -> None:
        client = self.clients[which]
        client.group.commit_call(
            offset,
            member_id=client.member_id if as_member else "",
            generation=client.generation if as_member else -1,
            instance=client.instance if as_member else None,
            partitions=[offset % 3],
            retention_ms=retention,
            version=4,
        )

    @rule(which=CLIENTS, offset=st.integers(0, 9), as_member=st.booleans())
    @precondition(lambda self: self.behaviour is not BEHAVIOUR_0_9)
    def commit_in_transaction(self, which: int, offset: int, as_member: bool) -> None:
        client = self.clients[which]
        client.group.commit_in_transaction_call(
            offset,
            producer_id=which % 2,
            member_id=client.member_id if as_member else "",
            generation=client.generation if as_member else -1,
            partitions=[offset % 3],
        )

    @rule(producer_id=st.integers(0, 1), committed=st.booleans())
    def end_transaction(self, producer_id: int, committed: bool) -> None:
        self.driver.release()
        self.driver.end_transaction(producer_id, committed)

    @rule(group_id=st.sampled_from(GROUPS), stable=st.booleans())
    def fetch(self, group_id: str, stable: bool) -> None:
        Group(self.driver, group_id).fetch_call(None, stable=stable)

    @rule(group_id=st.sampled_from(GROUPS))
    def delete_offsets(self, group_id: str) -> None:
        Group(self.driver, group_id).delete_offsets(0, 1)

    @rule(group_id=st.sampled_from(GROUPS))
    @precondition(lambda self: self.behaviour is not BEHAVIOUR_0_9)
    def delete_group(self, group_id: str) -> None:
        Group(self.driver, group_id).delete()

    @rule()
    def expire(self) -> None:
        self.driver.tell("expire")

    @rule()
    def delete_topic(self) -> None:
        self.driver.tell("topic_deleted", [TOPIC])

    # The world.

    @rule(ms=st.sampled_from([1, 1_000, 3_000, SESSION_MS - 1, SESSION_MS, 20_000, 300_000]))
    def pass_time(self, ms: int) -> None:
        self.driver.pass_time(ms)

    @rule()
    def stall_the_log(self) -> None:
        self.driver.hold()

    @rule()
    def replicate(self) -> None:
        self.driver.release()

    @rule(error=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER]))
    def lose_the_tail(self, error: ErrorCode) -> None:
        if not self.driver.late:
            self.driver.fail(error)

    @rule()
    def time_out(self) -> None:
        self.driver.time_out()

    @rule()
    def move(self) -> None:
        self.driver.move()

    def _expect(self, client: Client, call: Call, then: Callable[[], None]) -> None:
        client.call = call
        self.expected.append((call, then))

    @invariant()
    def believe_answers(self) -> None:
        for call, then in list(getattr(self, "expected", ())):
            if not call.waits:
                self.expected.remove((call, then))
                if call.answers:
                    then()

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.run_out()
            self.driver.check_all_answered()


@pytest.mark.parametrize(
    "behaviour", [BEHAVIOUR_0_9, BEHAVIOUR_2_8, BEHAVIOUR_3_9, BEHAVIOUR_4_3], ids=lambda m: m.release
)
def test_random_events_break_no_promise(behaviour: GroupBehaviour) -> None:
    """Whatever clients, log and brokers do."""
    machine = type("GroupsOf", (Groups,), {"behaviour": behaviour})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
