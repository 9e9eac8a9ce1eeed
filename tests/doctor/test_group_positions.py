"""Where a group stood, by partition: made of runs when a rule asks, and the same as from single rows."""

from kelpie.doctor.group_positions import (
    LastOffsets,
    Positions,
    committed_since,
    rows_in,
    runs_by_group,
)
from kelpie.model.names import TopicPartition
from kelpie.observations import Commit
from kelpie.observations.group_offsets import GroupCommits, GroupOffsets
from kelpie.observations.positions import NO_OFFSET
from tests.doctor.building import MINUTE, NOW, a_committed, by_partition, commits

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def _told(*offsets: int, at: int | None = NOW, names: tuple[TopicPartition, ...] = ()) -> GroupOffsets:
    places = names or tuple(TopicPartition("orders", number) for number in range(len(offsets)))
    return GroupOffsets("billing", places, offsets, (4,) * len(offsets), ("",) * len(offsets), at, "broker 1")


def _committed(*offsets: int, at: int | None = NOW) -> GroupCommits:
    count = len(offsets)
    names = tuple(TopicPartition("orders", number) for number in range(count))
    place = "broker 1, __consumer_offsets-7"
    same = (4,) * count, ("",) * count, ("",) * count
    return GroupCommits("billing", names, offsets, *same, at, False, place, range(count))


def test_looks_are_told_by_partition_and_by_time() -> None:
    """A rule asks for one partition, and gets all that was seen of it."""
    looks = Positions([_told(5, 7, at=NOW - MINUTE), _told(6, 7)])
    assert list(looks) == [FIRST, SECOND]
    assert [(row.at, row.offset) for row in looks[FIRST]] == [(NOW - MINUTE, 5), (NOW, 6)]
    assert len(looks) == 2
    assert rows_in(looks) == 4


def test_runs_of_other_partitions_are_put_together_by_time() -> None:
    """A group that began to read a second partition, or whose coordinator tells another order."""
    looks = Positions([_told(5, at=NOW - MINUTE), _told(9, 6, names=(SECOND, FIRST))])
    assert [row.offset for row in looks[FIRST]] == [5, 6]
    assert [row.offset for row in looks[SECOND]] == [9]


def test_a_partition_that_is_told_twice_in_one_run_keeps_both_rows() -> None:
    """No row may get lost because another one has the same name."""
    looks = Positions([_told(5, 6, names=(FIRST, FIRST))])
    assert [row.offset for row in looks[FIRST]] == [5, 6]


def test_rows_that_come_one_by_one_are_the_same_as_runs() -> None:
    """Tables, files and stores of before have rows; surveys have runs."""
    runs = [_committed(5, 7, at=NOW - MINUTE), _committed(6, 8)]
    rows = [row for run in runs for row in run.rows]
    by_row = Positions(runs_by_group([], rows)["billing"])
    assert dict(by_row) == dict(Positions(runs_by_group(runs, [])["billing"])) == by_partition(rows)


def test_rows_without_a_time_come_first() -> None:
    """Nobody knows when they were made: they must not count as the newest."""
    runs = runs_by_group([_told(6), _told(5, at=None)], [a_committed(4, at=None)])["billing"]
    assert [run.at for run in runs] == [None, None, NOW]
    assert [row.offset for row in Positions(runs)[FIRST]] == [5, 4, 6]


def test_a_group_without_rows_has_no_positions() -> None:
    """Whether there are any is known without laying them out."""
    nothing: Positions[Commit] = Positions()
    assert not nothing
    assert not list(nothing)
    assert Positions([_told(5)])


def test_the_last_offsets_are_those_of_one_survey() -> None:
    offsets = LastOffsets(_told(5, 7))
    assert offsets
    assert {name: row.offset for name, row in offsets.items()} == {FIRST: 5, SECOND: 7}
    assert offsets[FIRST] == a_committed(5, leader_epoch=4, metadata="")


def test_a_removed_offset_is_no_commit_of_late() -> None:
    """A tool that removes offsets does not show that the group is alive. Runs and rows say the same."""
    since = NOW - MINUTE
    for offset, at, is_late in ((8, NOW, True), (8, since, False), (NO_OFFSET, NOW, False)):
        assert committed_since(Positions([_committed(offset, at=at)]), since) is is_late
        assert committed_since(by_partition(commits((at, offset))), since) is is_late
    assert not committed_since(Positions([_committed(8, at=None)]), since)
