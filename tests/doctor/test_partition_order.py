"""Offsets of groups that name the same partitions in different orders, compared a run at a time."""

from collections.abc import Sequence
from typing import Any

import pytest

from kelpie.doctor.group_positions import RowRun
from kelpie.doctor.partition_order import PartitionOrder
from kelpie.model.names import TopicPartition
from kelpie.observations import Committed
from kelpie.observations.group_offsets import GroupCommits, GroupOffsets
from tests.doctor.building import MINUTE, NOW

NAMES = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("payments", 0))
IDS = ("id of orders", "id of orders", "id of payments")
OFFSETS = (10, 20, 30)


def _look(offsets: Sequence[int] = OFFSETS, at: int | None = NOW, **fields: Any) -> GroupOffsets:
    row = GroupOffsets("billing", NAMES, tuple(offsets), (0,) * 3, ("",) * 3, at, "broker 1")
    return row._replace(**fields)


def _commit(offsets: Sequence[int] = OFFSETS, at: int | None = NOW, **fields: Any) -> GroupCommits:
    same = (0,) * 3, ("",) * 3, IDS
    row = GroupCommits("billing", NAMES, tuple(offsets), *same, at, False, "__consumer_offsets-7", (1, 2, 3))
    return row._replace(**fields)


def test_values_come_in_the_order_of_the_names() -> None:
    """Other partitions have none here, also if there are as many of them, or one twice."""
    order = PartitionOrder(NAMES, IDS)
    assert order.values(NAMES, OFFSETS) == OFFSETS
    assert order.values(tuple(reversed(NAMES)), (30, 20, 10)) == OFFSETS
    assert order.values(tuple(NAMES), OFFSETS) == OFFSETS
    assert order.values(NAMES[:2], (10, 20)) is None
    assert order.values((*NAMES[:2], TopicPartition("orders", 2)), OFFSETS) is None
    assert order.values((*NAMES, NAMES[0]), (*OFFSETS, 10)) is None


def test_commits_to_a_topic_of_the_same_name_that_is_gone_do_not_count() -> None:
    """Its id says so. Kafka before 2.8 tells none."""
    order = PartitionOrder(NAMES, IDS)
    turned = _commit((30, 20, 10), names=NAMES[::-1], topic_ids=IDS[::-1])
    assert order.committed(_commit()) == OFFSETS
    assert order.committed(turned) == OFFSETS
    assert order.committed(_commit(topic_ids=("",) * 3)) == OFFSETS
    assert order.committed(_commit(topic_ids=(*IDS[:2], "id of another one"))) is None
    assert order.committed(turned._replace(topic_ids=IDS)) is None


@pytest.mark.parametrize(
    ("commits", "looks", "began"),
    [
        ([], [_look()], NOW),
        ([], [_look(at=NOW - MINUTE), _look()], NOW - MINUTE),
        ([_commit(at=NOW - 5 * MINUTE)], [_look(at=NOW - MINUTE), _look()], NOW - 5 * MINUTE),
        ([_commit(OFFSETS[::-1], names=NAMES[::-1], topic_ids=IDS[::-1])], [_look()], NOW),
        ([], [], None),
        ([_commit()], [], None),
        ([_commit((9, 20, 30), NOW - MINUTE), _commit()], [_look()], None),
        ([], [_look((9, 20, 30), NOW - MINUTE), _look()], None),
        ([], [_look(at=None), _look()], None),
        ([_commit(at=None)], [_look()], None),
        ([_commit(topic_ids=("", "", "another"))], [_look()], None),
        ([], [_look(names=NAMES[:2], offsets=OFFSETS[:2])], None),
    ],
    ids=[
        "one look",
        "two looks",
        "a commit before them",
        "a commit in another order",
        "nothing is known",
        "no look",
        "it moved by a commit",
        "it moved between looks",
        "a look without a time",
        "a commit without a time",
        "another topic",
        "other partitions",
    ],
)
def test_rest_begins_with_the_first_row_of_a_group_that_never_moved(
    commits: Sequence[GroupCommits], looks: Sequence[GroupOffsets], began: int | None
) -> None:
    assert PartitionOrder(NAMES, IDS).rest_began(OFFSETS, commits, looks) == began


def test_a_look_with_an_error_shows_no_rest() -> None:
    """The coordinator would not tell one of the offsets: where the group stood is not known."""
    rows = [
        Committed("billing", *name, offset=offset, at=NOW)
        for name, offset in zip(NAMES, OFFSETS, strict=True)
    ]
    refused = [rows[0]._replace(error=88), *rows[1:]]
    order = PartitionOrder(NAMES, IDS)
    assert order.rest_began(OFFSETS, [], [RowRun("billing", NAMES, OFFSETS, NOW, rows)]) == NOW
    assert order.rest_began(OFFSETS, [], [RowRun("billing", NAMES, OFFSETS, NOW, refused)]) is None
