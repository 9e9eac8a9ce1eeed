"""Which replicas to add or move."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kelpie.model.names import TopicPartition
from kelpie.repair.plan import CannotRepair
from kelpie.repair.replica_placement import (
    Placement,
    ReplicaMove,
    ReplicaMoves,
    as_json,
    from_json,
    moves_for,
)

_NODES = st.integers(1, 8)


@st.composite
def placements(draw: st.DrawFn) -> list[Placement]:
    found = []
    for partition in range(draw(st.integers(1, 20))):
        replicas = tuple(draw(st.lists(_NODES, unique=True, min_size=1, max_size=4)))
        in_sync = tuple(node for node in replicas if draw(st.booleans()))
        leader = draw(st.sampled_from([-1, *in_sync])) if in_sync else -1
        found.append(Placement(partition, replicas, leader, in_sync))
    return found


_RACKS = st.dictionaries(_NODES, st.sampled_from([None, "a", "b"]), min_size=2)


def applied(before: list[Placement], moves: ReplicaMoves) -> list[Placement]:
    changed = {move.partition: move.after for move in moves.moves}
    return [
        Placement(it.partition, changed[it.partition], it.leader, changed[it.partition])
        if it.partition in changed
        else it
        for it in before
    ]


@given(placements(), _RACKS, st.none() | st.integers(2, 4))
def test_afterwards_every_partition_survives_the_loss_of_any_one_broker(
    before: list[Placement], racks: dict[int, str | None], replication: int | None
) -> None:
    """That is what the command promises."""
    assume(replication is None or replication <= len(racks))
    moves = moves_for(before, racks, replication)
    left = {it.partition for it in moves.leaderless}
    for after, was in zip(applied(before, moves), before, strict=True):
        if after.partition in left:
            assert after == was
            continue
        assert set(after.replicas) <= set(racks), "dead brokers cannot receive replicas"
        assert len(set(after.replicas)) == len(after.replicas) >= 2
        assert replication is None or len(after.replicas) == replication
        for lost in racks:
            assert set(after.replicas) - {lost}
        if len(set(racks.values())) > 1:
            assert len({racks[node] for node in after.replicas}) > 1
        if was.leader in racks:
            assert was.leader in after.replicas, "the leader stays"


@given(placements(), _RACKS)
def test_planning_again_after_it_finds_nothing_to_do(
    before: list[Placement], racks: dict[int, str | None]
) -> None:
    """Running the command twice moves nothing twice."""
    moves = moves_for(before, racks)
    assert moves_for(applied(before, moves), racks).moves == ()


@given(placements(), _RACKS)
def test_a_living_replica_leaves_only_for_another_rack(
    before: list[Placement], racks: dict[int, str | None]
) -> None:
    """Copying costs; only what has to move is moved."""
    for move in moves_for(before, racks).moves:
        alive = [node for node in move.removed if node in racks]
        assert len(alive) <= 1
        if alive:
            assert len({racks[node] for node in move.before if node in racks}) == 1
            assert len({racks[node] for node in move.after}) > 1


def test_new_replicas_are_spread() -> None:
    """Fifty partitions on one broker must not all get their second replica on the same one."""
    before = [Placement(at, (1,), 1, (1,)) for at in range(48)]
    moves = moves_for(before, dict.fromkeys([1, 2, 3, 4, 5], None), 2).moves
    added = [node for move in moves for node in move.added]
    assert {node: added.count(node) for node in sorted(set(added))} == {2: 12, 3: 12, 4: 12, 5: 12}


def test_the_leader_becomes_the_preferred_one_when_that_is_dead() -> None:
    """Else the next preferred election would look for a broker that is gone."""
    (move,) = moves_for([Placement(0, (9, 2, 1), 1, (1,))], _plain(1, 2, 3)).moves
    assert move == ReplicaMove(0, (9, 2, 1), (1, 2, 3))
    assert (move.added, move.removed) == ((3,), (9,))


def test_a_leader_on_a_broker_that_shall_hold_no_replicas_is_still_a_source() -> None:
    """--brokers empties the others; their data can be copied as long as they live."""
    moves = moves_for([Placement(0, (1, 2), 1, (1, 2))], _plain(3, 4), living=[1, 2])
    assert moves.leaderless == ()
    assert moves.moves == (ReplicaMove(0, (1, 2), (3, 4)),)


def test_a_partition_without_a_leader_is_left_alone() -> None:
    """A new replica would have nobody to copy from."""
    dead = Placement(0, (8, 9), -1, ())
    assert moves_for([dead], _plain(1, 2)) == ReplicaMoves((), (dead,))


@pytest.mark.parametrize(
    ("racks", "replication", "complaint"),
    [
        ({1: None}, None, "Only 1 broker can hold replicas"),
        ({1: None, 2: None}, 1, "fewer than 2"),
        ({1: None, 2: None}, 3, "3 replicas need as many living brokers; there are 2: 1, 2"),
    ],
)
def test_what_cannot_be_had_is_refused(
    racks: Mapping[int, str | None], replication: int | None, complaint: str
) -> None:
    """With the numbers, and what would help."""
    with pytest.raises(CannotRepair, match=complaint):
        moves_for([Placement(0, (1,), 1, (1,))], racks, replication)


def test_the_json_is_that_of_kafkas_tool() -> None:
    """It can be pasted, and read back."""
    text = as_json({1: [2, 3], 0: [1, 2]})
    assert json.loads(text) == {
        "version": 1,
        "partitions": [
            {"topic": "__consumer_offsets", "partition": 0, "replicas": [1, 2]},
            {"topic": "__consumer_offsets", "partition": 1, "replicas": [2, 3]},
        ],
    }
    assert max(map(len, text.splitlines())) <= 80
    assert from_json(text, "f")[TopicPartition("__consumer_offsets", 1)] == (2, 3)
    with pytest.raises(CannotRepair, match=r"f\.json is no reassignment"):
        from_json("[]", "f.json")


def _plain(*nodes: int) -> dict[int, str | None]:
    return dict.fromkeys(nodes)
