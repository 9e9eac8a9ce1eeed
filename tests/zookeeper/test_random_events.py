"""Groups of both behaviours under random events: nothing that happens may break what a group promises."""

import random
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kelpie.model.names import TopicPartition
from kelpie.zookeeper.config import Behaviour
from kelpie.zookeeper.requests import Answer, Delete, Put, Request
from kelpie.zookeeper.simulation.group import GroupSettings, SimulatedGroup
from kelpie.zookeeper.simulation.member import SimulatedMember
from kelpie.zookeeper.steps import RebalanceFailed

READ_MS = 150
QUIET_MS = 200_000
"""Longer than any session, any back-off, any recovery."""


class Event(NamedTuple):
    kind: str
    who: int
    ms: int


KINDS = ("join", "kill", "restart", "close", "stop", "disconnect", "pause", "broker", "unregister", "wait")
EVENTS = st.lists(
    st.builds(Event, st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 9_000)),
    min_size=6,
    max_size=12,
)


class World:
    """A group whose members consume, and a judge who looks at every write and at every reading."""

    def __init__(self, group_settings: GroupSettings, seed: int) -> None:
        self.group = SimulatedGroup(group_settings, random.Random(seed))
        self._every_ms = READ_MS
        self.delivered: dict[TopicPartition, list[int]] = {}
        self.went_backwards: list[str] = []
        self.read_twice: list[tuple[TopicPartition, list[str]]] = []
        tree = self.group.server.tree
        carry_out = tree.carry_out

        def judged(session: int, request: Request) -> Answer:
            before = tree.get(request.path)
            answer = carry_out(session, request)
            if isinstance(request, Put) and "/offsets/" in request.path and before is not None:
                after = tree.get(request.path)
                assert after is not None
                if int(after.value) < int(before.value):
                    self.went_backwards.append(f"{request.path}: {before.value!r} to {after.value!r}")
            return answer

        tree.carry_out = judged  # type: ignore[method-assign]
        self.group.agenda.after(READ_MS, self._read)

    def _read(self) -> None:
        for member in self.group.living:
            if not member.is_stopped:
                for partition, offset in member.reading.items():
                    start = max(0, offset)
                    self.delivered.setdefault(partition, []).append(start)
                    member.reading[partition] = start + 1
                    member.machine.consumed(partition, start + 1, self.group.agenda.now)
        for partition, members in self.group.readers().items():
            informed = [member.consumer_id for member in members if not member.is_out_of_date]
            if len(informed) > 1:
                self.read_twice.append((partition, informed))
        self.group.agenda.after(self._every_ms, self._read)

    def happen(self, event: Event, behaviour: Behaviour) -> None:
        group = self.group
        living = group.living
        member = living[event.who % len(living)] if living else None
        match event.kind:
            case "join":
                if len(living) < 6:
                    group.new_member(behaviour=behaviour).start()
            case "pause":
                if not group.server.is_paused:
                    group.pause_zookeeper(event.ms * 2)
            case "broker":
                group.remove_broker(0)
                group.agenda.after(event.ms, group.add_broker, 0)
            case "wait":
                pass
            case _ if member is not None:
                self._happen_to(member, event)
        group.agenda.run(group.agenda.now + event.ms)

    def _happen_to(self, member: SimulatedMember, event: Event) -> None:
        group = self.group
        match event.kind:
            case "kill":
                member.kill()
            case "restart":
                # With the same consumer.id: its old nodes are there, and name it.
                member.kill()
                behaviour = member.config.behaviour
                group.new_member(behaviour=behaviour, consumer_id=member.consumer_id).start()
            case "close":
                if not member.is_stopped:
                    member.close()
            case "stop":
                member.stop(event.ms * 2)
            case "disconnect":
                member.lose_connection(event.ms * 2)
            case _:
                group.server.change(group.kafka_session, Delete(group.paths.member(member.consumer_id)))

    def settle(self) -> None:
        """At least one living member, and time for everything to end."""
        if not self.group.living:
            self.group.new_member(behaviour=Behaviour.RECOVERING).start()
        self._every_ms = QUIET_MS // 50
        self.group.agenda.run(self.group.agenda.now + QUIET_MS)


GROUP = GroupSettings(
    members=3, partitions=5, retries=3, backoff_ms=700, auto_commit_interval_ms=900, threads=2
)


def played(behaviours: list[Behaviour], events: list[Event], seed: int) -> World:
    world = World(GROUP, seed)
    for behaviour in behaviours:
        world.group.new_member(behaviour=behaviour).start()
    world.group.agenda.run(world.group.agenda.now + 3_000)
    for at, event in enumerate(events):
        world.happen(event, behaviours[at % len(behaviours)])
    world.settle()
    return world


RECOVERING = [Behaviour.RECOVERING] * 3
FAITHFUL = [Behaviour.FAITHFUL] * 3
MIXED = [Behaviour.RECOVERING, Behaviour.FAITHFUL, Behaviour.RECOVERING]


@settings(max_examples=35, deadline=None)
@given(EVENTS, st.integers(0, 1 << 30))
@example([Event("disconnect", 0, 9_000), Event("wait", 0, 9_000)], 3)
@example([Event("restart", 0, 9_000), Event("restart", 1, 0), Event("kill", 0, 9_000)], 5)
def test_a_recovering_group_always_ends_with_every_partition_read_once(
    events: list[Event], seed: int
) -> None:
    """Whatever happens: two members never read one partition, and no committed offset goes back."""
    world = played(RECOVERING, events, seed)
    assert world.read_twice == []
    assert world.went_backwards == []
    readers = world.group.readers()
    assert {partition: len(members) for partition, members in readers.items()} == dict.fromkeys(
        world.group.partitions(), 1
    )
    for partition, members in readers.items():
        assert world.group.owners()[partition] == members[0].consumer_id
    for partition, offsets in world.delivered.items():
        assert set(offsets) == set(range(max(offsets) + 1)), f"records of {partition} were skipped"


@settings(max_examples=15, deadline=None)
@given(EVENTS, st.integers(0, 1 << 30))
def test_a_recovering_member_of_a_mixed_group_ends_with_its_share(events: list[Event], seed: int) -> None:
    """It cannot mend the failures of 0.8, but no failure of 0.8 keeps it from its own share for ever."""
    world = played(MIXED, events, seed)
    idle_of_0_8 = {
        member.consumer_id
        for member in world.group.living
        if member.config.behaviour is Behaviour.FAITHFUL and not member.reading
    }
    if not idle_of_0_8:
        assert world.group.unread() == set()
    for partition, members in world.group.readers().items():
        assert len(members) == 1, (partition, [member.consumer_id for member in members])


CLEAN = st.lists(
    st.builds(Event, st.sampled_from(("join", "close", "wait")), st.integers(0, 9), st.integers(0, 4_000)),
    max_size=10,
)


@settings(max_examples=30, deadline=None)
@given(CLEAN, st.integers(0, 1 << 30))
def test_clean_joins_and_leaves_of_a_recovering_group_deliver_each_record_once(
    events: list[Event], seed: int
) -> None:
    """An offset that is read before the last owner has committed would deliver its records again."""
    world = played(RECOVERING, events, seed)
    assert world.read_twice == []
    for partition, offsets in world.delivered.items():
        assert sorted(offsets) == list(range(len(offsets))), partition


@settings(max_examples=15, deadline=None)
@given(CLEAN, st.integers(0, 1 << 30))
def test_clean_joins_and_leaves_do_not_keep_0_8_from_its_partitions(events: list[Event], seed: int) -> None:
    """Kafka 0.8 is right while nobody dies: after the last change, every partition has one owner."""
    world = played(FAITHFUL, events, seed)
    assert world.read_twice == []
    failed = any(
        isinstance(recorded.step, RebalanceFailed)
        for member in world.group.members
        for recorded in member.machine.history.steps
    )
    if not failed:
        assert world.group.unread() == set()
        assert set(world.group.owners()) == world.group.partitions()
