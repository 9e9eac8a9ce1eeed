"""Records of the offsets topic, made by hand, and the rows they come to."""

import sys
from types import FrameType

import pytest

from kelpie.model.names import TopicPartition
from kelpie.observations import Commit, Generation, GroupRemoved, Unasked
from kelpie.observations.offsets_topic import OffsetsPartition, Row
from kelpie.wire.offsets_topic import decode_value
from kelpie.wire.records import Codec, ControlType, write_control_batch, write_message_set
from tests.evidence.records import (
    batch,
    commit,
    epoch_of,
    generation,
    group_removed,
    member_gone,
    new_protocol,
    records,
)


def _rows(*buffers: bytes) -> list[Row]:
    partition = OffsetsPartition()
    return [placed.row for buffer in buffers for placed in partition.read(buffer, "here")]


def _marker(kind: ControlType, offset: int, producer: int = 7) -> bytes:
    return write_control_batch(
        kind, offset=offset, timestamp=6000, producer_id=producer, producer_epoch=0, coordinator_epoch=0
    )


def _offsets(rows: list[Row]) -> list[int]:
    return [row.offset for row in rows if isinstance(row, Commit)]


def test_a_commit_says_what_who_when_and_where() -> None:
    """The source leads to the very record."""
    (row,) = _rows(batch([commit("g", 42, at=1234, leader_epoch=5)], base=17))
    assert row == Commit("g", "orders", 0, 42, 1234, 5, "", None, False, "here@17")


def test_an_offset_that_is_removed_is_a_commit_of_none_at_the_time_of_its_batch() -> None:
    """A tombstone has no value that could hold a time."""
    (row,) = _rows(batch([commit("g", None)], at=5000))
    assert isinstance(row, Commit)
    assert row.removed
    assert row.at == 5000


def test_old_values_tell_when_they_expire() -> None:
    """Up to 2.0 every commit had its own end."""
    (row,) = _rows(batch([commit("g", 42, at=1000, version=1, expire_timestamp=87_400_000)]))
    assert isinstance(row, Commit)
    assert row.expires == 87_400_000


def test_a_generation_tells_members_timeouts_and_assignments() -> None:
    """The record is the only place where a dead coordinator's groups can still be seen."""
    (row,) = _rows(batch([generation("g", 3, {"m-1": [0, 1], "m-2": [2]})]))
    assert isinstance(row, Generation)
    assert (row.group, row.generation, row.protocol, row.leader, row.at) == ("g", 3, "range", "m-1", 5000)
    first, second = row.members
    assert first.assigned == (TopicPartition("orders", 0), TopicPartition("orders", 1))
    assert second.subscribed == ("orders",)
    assert (first.session_timeout_ms, first.rebalance_timeout_ms, first.host) == (
        10_000,
        300_000,
        "/10.0.0.1",
    )


def test_a_generation_of_0_9_has_the_session_for_its_rebalance_timeout() -> None:
    """There was no other: the coordinator waited as long as the session lasts."""
    (row,) = _rows(batch([generation("g", 1, {"m-1": [0]}, version=0)]))
    assert isinstance(row, Generation)
    assert row.members[0].rebalance_timeout_ms == 10_000


def test_records_without_times_have_the_time_of_the_commit_before_them() -> None:
    """Kafka 0.9 wrote magic 0; only commits carry a time in their value."""
    pairs = [
        generation("g", 1, {"m": [0]}, version=0),
        commit("g", 1, at=1000, version=1),
        group_removed("g"),
    ]
    rows = _rows(write_message_set([record._replace(timestamp=-1) for record in records(pairs)], magic=0))
    assert [row.at for row in rows] == [None, 1000, 1000]


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_read(codec: Codec) -> None:
    """offsets.topic.compression.codec may be any."""
    assert _offsets(_rows(batch([commit("g", n) for n in range(20)], codec=codec))) == list(range(20))


def test_transactional_commits_count_when_they_are_committed() -> None:
    """Before the marker nobody would get them, and after an abort nobody ever will."""
    transactional = {"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = batch([commit("g", 100)], base=0, **transactional)
    second = batch([commit("g", 300)], base=3, **transactional)
    third = batch([commit("g", 500)], base=5, **transactional)
    log = first + batch([commit("g", 1)], base=1) + _marker(ControlType.COMMIT, 2)
    log += second + _marker(ControlType.ABORT, 4) + third
    partition = OffsetsPartition()
    rows = [placed.row for placed in partition.read(log, "here")]
    assert _offsets(rows) == [1, 100]
    assert [row.transactional for row in rows if isinstance(row, Commit)] == [False, True]
    assert partition.open_transactions == 1
    (pending,) = partition.pending_commits
    assert (pending.group, pending.offset, pending.producer_id, pending.source) == ("g", 500, 7, "here@5")


def test_offsets_that_expire_while_a_transaction_hangs_cost_what_each_record_costs() -> None:
    """A hanging transaction with many commits, and a mass expiry: no tombstone looks at every commit."""

    def lines_run(count: int) -> int:
        transactional = {"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        pending = batch([commit("g", 1, partition=number) for number in range(count)], **transactional)
        expired = batch([commit("g", None, partition=count + number) for number in range(count)], base=count)
        partition, run = OffsetsPartition(), 0

        def counting(frame: FrameType, event: str, _: object) -> object:
            nonlocal run
            run += event == "line" and "observations" in frame.f_code.co_filename
            return counting

        before = sys.gettrace()
        sys.settrace(counting)  # type: ignore[arg-type]
        try:
            rows = [placed for buffer in (pending, expired) for placed in partition.read(buffer, "here")]
        finally:
            sys.settrace(before)
        assert len(rows) == len(partition.pending_commits) == count
        return run

    assert lines_run(400) < 2.2 * lines_run(200)


def test_a_removed_offset_takes_along_what_open_transactions_wrote_for_it() -> None:
    """Of every producer, and nothing else of theirs."""
    rows = [commit("g", 100), commit("g", 200, partition=1), commit("h", 300)]
    partition = OffsetsPartition()
    for producer in (7, 8):
        made = batch(rows, base=3 * producer, transactional=True, producer_id=producer, base_sequence=0)
        list(partition.read(made, "here"))
    list(partition.read(batch([commit("g", None)], base=50), "here"))
    assert [(row.group, row.partition) for row in partition.pending_commits] == [("g", 1), ("h", 0)] * 2
    ended = list(partition.read(_marker(ControlType.COMMIT, 51, producer=7), "here"))
    assert [placed.row.offset for placed in ended if isinstance(placed.row, Commit)] == [200, 300]
    assert partition.open_transactions == 1


@pytest.mark.parametrize("stamp", [-1, -(2**63), 2**63 - 1, 1_794_793_788_619_000, 253_402_300_800_000])
def test_a_time_that_cannot_be_is_that_of_the_newest_commit_before(stamp: int) -> None:
    """Microseconds, a broken clock, a hostile client: none may become the newest time of the partition."""
    rows = _rows(
        batch([commit("g", 1, at=stamp)]),
        batch([commit("g", 2, at=1000)], base=1),
        batch([commit("g", 3, at=stamp, version=1, expire_timestamp=stamp)], base=2),
        batch([commit("g", 4, at=2000)], base=3),
    )
    assert [row.at for row in rows if isinstance(row, Commit)] == [None, 1000, 1000, 2000]
    assert [row.expires for row in rows if isinstance(row, Commit)] == [None] * 4


def test_a_transaction_may_end_in_a_later_buffer() -> None:
    """A segment ends wherever it is full."""
    transactional = {"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    rows = _rows(batch([commit("g", 100)], **transactional), _marker(ControlType.COMMIT, 1))
    assert _offsets(rows) == [100]


def test_an_offset_that_is_removed_takes_open_commits_along() -> None:
    """As the coordinator does it when it replays."""
    transactional = {"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log = batch([commit("g", 100), commit("g", 200, partition=1)], **transactional)
    log += batch([commit("g", None)], base=2) + _marker(ControlType.COMMIT, 3)
    assert _offsets(_rows(log)) == [-1, 200]


def test_an_epoch_of_the_new_protocol_is_one_generation() -> None:
    """Seven kinds of records, one row: what the group agreed on."""
    rows = _rows(batch(new_protocol("g", 2, {"m-1": [0, 1], "m-2": [2]})))
    (row,) = rows
    assert isinstance(row, Generation)
    assert (row.generation, row.protocol_type, row.protocol, row.source) == (
        2,
        "consumer",
        "uniform",
        "here@2",
    )
    assert [member.member_id for member in row.members] == ["m-1", "m-2"]
    assert row.members[0].assigned == (TopicPartition("orders", 0), TopicPartition("orders", 1))
    assert {member.epoch for member in row.members} == {2}
    assert row.members[0].rebalance_timeout_ms == 45_000


def test_an_epoch_is_told_again_once_its_assignment_is_computed() -> None:
    """Since 4.3 that comes later than the epoch; until then the records hold the assignment before it."""
    log = batch(new_protocol("g", 2, {"m": [0]})) + batch([epoch_of("g", 3)], base=10)
    log += batch(new_protocol("g", 3, {"m": [0, 1]}), base=20)
    told = [(row.generation, row.members[0].assigned) for row in _rows(log) if isinstance(row, Generation)]
    before = (TopicPartition("orders", 0),)
    assert told == [(2, before), (3, before), (3, (*before, TopicPartition("orders", 1)))]


def test_a_member_that_leaves_makes_an_epoch_without_it() -> None:
    """Its records are deleted and the epoch is raised, in one write."""
    log = batch(new_protocol("g", 2, {"m-1": [0]}))
    log += batch([*member_gone("g", "m-1"), epoch_of("g", 3)], base=10) + batch(
        [epoch_of("g", None)], base=20
    )
    first, second, removed = _rows(log)
    assert isinstance(first, Generation)
    assert isinstance(second, Generation)
    assert (second.generation, second.members) == (3, ())
    assert removed == GroupRemoved("g", 5000, "here@20")


def test_topic_ids_get_their_names_from_commits() -> None:
    """Since 4.1 the new protocol's records name topics by id only."""
    other = bytes(16 * [9])
    log = batch([commit("g", 1, version=4, topic_id=other)]) + batch(
        new_protocol("g", 2, {"m": [0]}, topic_id=other), base=5
    )
    generations = [row for row in _rows(log) if isinstance(row, Generation)]
    assert generations[0].members[0].assigned == (TopicPartition("orders", 0),)


def test_a_group_that_changes_to_the_new_protocol_is_not_removed() -> None:
    """Kafka deletes the old record and writes the new ones in the same batch."""
    rows = _rows(batch([group_removed("g"), *new_protocol("g", 5, {"m": [0]})]))
    assert [type(row) for row in rows] == [Generation]
    assert [type(row) for row in _rows(batch([group_removed("g")]))] == [GroupRemoved]


def test_a_null_that_kafka_4_writes_out_is_read() -> None:
    """Kafka 4.3 writes the missing part of a member as a tagged field of one zero."""
    raw = bytes.fromhex(
        "0000000011636f6e736f6c652d636f6e73756d65720b2f3132372e302e302e31"
        "02097061796d656e747301000493e00001000100"
    )
    value = decode_value(5, raw)
    assert value.classic_member_metadata is None
    assert value.subscribed_topic_names == ["payments"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda raw: raw[:-3], "no whole batch"),
        (lambda raw: raw[:-1] + b"\xff", "checksum"),
        (lambda raw: raw + b"\0" * 99, "zeros"),
    ],
)
def test_damage_ends_a_buffer_and_is_told(damage: object, reason: str) -> None:
    """A killed broker's last write may be torn; what is before it is good."""
    good = batch([commit("g", 1)])
    rows = _rows(good + damage(batch([commit("g", 2)], base=1)))  # type: ignore[operator]
    *_, told = rows
    assert _offsets(rows)[0] == 1
    assert isinstance(told, Unasked)
    assert (told.kind, told.name) == ("file", "here")
    assert reason in told.reason


def test_a_record_that_cannot_be_read_costs_only_itself() -> None:
    """A newer Kafka has types that nobody knows yet, and anyone may write rubbish."""
    log = batch([commit("g", 1), (b"\x00\x01\x00", b"x"), (b"\x00\x63new", b"\x00\x00"), commit("g", 2)])
    rows = _rows(log)
    assert _offsets(rows) == [1, 2]
    assert isinstance(rows[-1], Unasked)
    assert "1 records cannot be read; the first: offset 1" in rows[-1].reason


def test_batches_that_come_twice_count_once() -> None:
    """A fetch begins with the whole batch that holds the offset asked for."""
    first, second = batch([commit("g", 1), commit("g", 2)]), batch([commit("g", 3)], base=2)
    assert _offsets(_rows(first, first + second)) == [1, 2, 3]


def test_members_of_other_protocols_stay_closed() -> None:
    """The bytes of Kafka Connect's workers are not those of consumers."""
    key, value = generation("connect-cluster", 1, {"m": [0]})
    assert value is not None
    foreign = value.replace(b"\x00\x08consumer", b"\x00\x08connect!")
    (row,) = _rows(batch([(key, foreign)]))
    assert isinstance(row, Generation)
    assert (row.members[0].subscribed, row.members[0].assigned) == (None, None)
