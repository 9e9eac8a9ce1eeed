"""Groups at the end of each log are recognised by whole runs; of all others each row is looked at."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kelpie.doctor.case import Case
from kelpie.doctor.group_positions import LastOffsets, Positions
from kelpie.doctor.partition_order import PartitionOrder
from kelpie.doctor.plain_positions import ReadPartition, ReadTogether, were_told_twice
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.observations.group_offsets import GroupCommits, GroupOffsets
from tests.doctor.building import MINUTE, NOW, a_case

NAMES = (TopicPartition("orders", 0), TopicPartition("orders", 1))
ENDS = (100, 200)
EPOCH = 4


def _partition(latest: int) -> ReadPartition:
    return ReadPartition(0, 0, latest, EPOCH, {}, "id", True, False)


def _read(**fields: Any) -> ReadTogether:
    """Two partitions; `fields` are those of the first."""
    partitions = (_partition(ENDS[0])._replace(**fields), _partition(ENDS[1]))
    return ReadTogether(PartitionOrder(NAMES, ("id", "id")), dict(zip(NAMES, partitions, strict=True)), 0)


def _told(offsets: Sequence[int] = ENDS, at: int | None = NOW, **fields: Any) -> GroupOffsets:
    row = GroupOffsets("billing", NAMES, tuple(offsets), (EPOCH, EPOCH), ("", ""), at, "broker 1")
    return row._replace(**fields)


def _commit(offsets: Sequence[int] = ENDS, at: int | None = NOW, **fields: Any) -> GroupCommits:
    same = (EPOCH, EPOCH), ("", ""), ("id", "id")
    row = GroupCommits("billing", NAMES, tuple(offsets), *same, at, False, "__consumer_offsets-7", (1, 2))
    return row._replace(**fields)


def _case(
    told: GroupOffsets | None = None,
    commits: Sequence[GroupCommits] = (),
    looks: Sequence[GroupOffsets] | None = None,
) -> Case:
    last = told or _told()
    over_time = Positions([last] if looks is None else looks)
    return a_case(committed=LastOffsets(last), commits=Positions(commits), committed_over_time=over_time)


@pytest.mark.parametrize(
    "case",
    [
        _case(),
        _case(commits=[_commit((90, 200), NOW - MINUTE), _commit()]),
        _case(looks=[_told((90, 190), NOW - MINUTE), _told()]),
        _case(commits=[_commit(ENDS[::-1], names=NAMES[::-1])]),
    ],
    ids=["one look", "it moved on by commits", "it moved on by looks", "it commits in another order"],
)
def test_a_group_that_has_read_everything_has_the_signs_of_its_partitions(case: Case) -> None:
    """Nothing else is to be said of it."""
    assert _read().signs_of_plain(case) == 0
    assert _read(signs=Sign.HELD_BACK).signs_of_plain(case) == Sign.HELD_BACK


@pytest.mark.parametrize(
    "case",
    [
        _case(_told((99, 200))),
        _case(_told((101, 200))),
        _case(commits=[_commit((100, 201), NOW - MINUTE), _commit()]),
        _case(commits=[_commit((100, -1), NOW - MINUTE), _commit()]),
        _case(commits=[_commit((90, 200))]),
        _case(looks=[_told((110, 200), NOW - MINUTE), _told()]),
        _case(commits=[_commit(at=None)]),
        _case(commits=[_commit((100,), names=NAMES[:1], leader_epochs=(EPOCH,), topic_ids=("id",))]),
        _case(commits=[_commit(topic_ids=("another", "id"))]),
        _case(_told(leader_epochs=(EPOCH, EPOCH - 1))),
        _case(_told(leader_epochs=(EPOCH, EPOCH + 1))),
    ],
    ids=[
        "one record behind",
        "beyond the end",
        "its commits went back",
        "an offset was removed",
        "its last commit is behind",
        "looks saw it further on",
        "a commit without a time",
        "a commit in fewer partitions",
        "a commit in an earlier topic of the name",
        "an epoch of which nobody told the end",
        "an epoch that is yet to come",
    ],
)
def test_in_doubt_each_row_is_looked_at(case: Case) -> None:
    """A sign that is missing would hide a fault."""
    assert _read().signs_of_plain(case) is None


@pytest.mark.parametrize("fields", [{"signs": Sign.BEHIND}, {"latest": -1}, {"start": 101}])
def test_partitions_of_which_too_little_is_known_settle_nothing(fields: Mapping[str, Any]) -> None:
    """Where a log ends must be known, and what is the same for all groups must leave no doubt."""
    assert _read(**fields).signs_of_plain(_case()) is None


def test_an_older_epoch_is_as_good_if_the_log_still_has_all_of_it() -> None:
    """After an election, commits of the epoch before stay right up to where that epoch ended."""
    case = _case(_told(leader_epochs=(EPOCH - 1, EPOCH)))
    assert _read(epoch_ends={EPOCH - 1: 100}).signs_of_plain(case) == 0
    assert _read(epoch_ends={EPOCH - 1: 99}).signs_of_plain(case) is None


def test_commits_without_epochs_need_a_topic_that_is_proven() -> None:
    """Old clients commit no leader epoch: the topic may have been created again since."""
    case = _case(_told(leader_epochs=(-1, -1)))
    assert _read().signs_of_plain(case) == Sign.NO_EPOCH
    assert _read(is_topic_proven=False).signs_of_plain(case) is None
    with_ids = _case(_told(leader_epochs=(-1, -1)), commits=[_commit()])
    assert _read(is_topic_proven=False).signs_of_plain(with_ids) == Sign.NO_EPOCH


def test_two_surveys_are_needed_to_compare() -> None:
    """One survey does not show where the group stood before."""
    assert were_told_twice(Positions([_told(at=NOW - MINUTE), _told()]))
    assert not were_told_twice(Positions([_told()]))
    assert not were_told_twice({})
