"""Where a reset puts a partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.client.admin.log_ends import OffsetAt
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.observations import PartitionView
from kelpie.observations.positions import NO_OFFSET
from kelpie.repair.claims import Claim, ClaimKind
from kelpie.repair.log_ends import Ends
from kelpie.repair.plan import CannotRepair, SkippedPartition
from kelpie.repair.reset_targets import (
    NewOffset,
    ResetTarget,
    ShiftBy,
    ToEarliest,
    ToGiven,
    ToLatest,
    ToTime,
    new_offset,
    parse_time,
    scope,
)

ORDERS = TopicPartition("orders", 0)
LOG = Ends(100, 200)


def _given(offset: int) -> ToGiven:
    claim = Claim(ORDERS, offset, "f.csv", kind=ClaimKind.GIVEN, leader_epoch=3, metadata="m")
    return ToGiven({ORDERS: claim}, "to what f.csv says")


@pytest.mark.parametrize(
    ("aim", "before", "found", "offset", "note"),
    [
        (ToEarliest(), 150, None, 100, ""),
        (ToLatest(), 150, None, 200, ""),
        (ToLatest(), None, None, 200, ""),
        (ShiftBy(-10), 150, None, 140, ""),
        (ShiftBy(-70), 150, None, 100, "80 is gone; the log begins at 100"),
        (ShiftBy(70), 150, None, 200, "220 is beyond the end of the log"),
        (ToTime(5), 150, OffsetAt(160), 160, ""),
        (ToTime(5), 150, OffsetAt(NO_OFFSET), 200, "no record is that new: the end"),
        (
            ToTime(5),
            150,
            OffsetAt(120, coarse=True),
            120,
            "about: this release knows only when segments were written",
        ),
        (
            ToTime(5),
            150,
            OffsetAt(coarse=True),
            100,
            "about: this release knows only when segments were written",
        ),
        (_given(170), 150, None, 170, ""),
        (_given(10), 150, None, 100, "10 is gone; the log begins at 100"),
    ],
)
def test_each_aim_has_its_offset_within_the_log(
    aim: ResetTarget, before: int | None, found: OffsetAt | None, offset: int, note: str
) -> None:
    """As Kafka's own tool does it, and said where it is not what was asked for."""
    assert new_offset(aim, ORDERS, before, LOG, found) == NewOffset(
        ORDERS, before, offset, note, aim.claims[ORDERS] if isinstance(aim, ToGiven) and not note else None
    )


@pytest.mark.parametrize(
    ("aim", "before", "ends", "reason"),
    [
        (ToEarliest(), 1, Ends(failure="no leader"), "no leader"),
        (ShiftBy(1), None, LOG, "nothing is committed"),
        (ToTime(5), 1, LOG, "nobody could be asked"),
        (ToGiven({}, "to what f.csv says"), 1, LOG, "no offset is known to what f.csv says"),
    ],
)
def test_a_partition_without_an_offset_to_go_to_stays(
    aim: ResetTarget, before: int | None, ends: Ends, reason: str
) -> None:
    """It is left out, with the reason, and the others are reset all the same."""
    missed = new_offset(aim, ORDERS, before, ends)
    assert isinstance(missed, SkippedPartition)
    assert reason in missed.reason


def test_a_named_offset_is_taken_as_it_is_where_the_log_cannot_be_asked() -> None:
    """The leader may be dead just now; the file says where to go."""
    target = new_offset(_given(10), ORDERS, 5, Ends(failure="orders-0 has no living leader"))
    assert isinstance(target, NewOffset)
    assert (target.offset, target.note) == (10, "not checked: orders-0 has no living leader")


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000), st.integers(-2000, 2000))
def test_no_shift_leaves_the_log(start: int, length: int, before: int, by: int) -> None:
    """An offset outside would make consumers fall back on their reset policy."""
    target = new_offset(ShiftBy(by), ORDERS, before, Ends(start, start + length))
    assert isinstance(target, NewOffset)
    assert start <= target.offset <= start + length


def test_the_scope_is_what_is_committed_or_what_is_named() -> None:
    """By default nothing is touched that the group has never read."""
    names = [TopicPartition("orders", number) for number in range(3)]
    views = {name: (PartitionView(*name, 1, (1,), (1,)),) for name in names}
    cluster = ClusterView(now=0, views=views)
    assert scope(ToEarliest(), {names[1]}, cluster, []) == [names[1]]
    assert scope(_given(1), {names[1]}, cluster, []) == names[:2]
    assert scope(ToEarliest(), set(), cluster, ["orders"]) == names
    assert scope(ToEarliest(), set(), cluster, ["orders:0,2", "orders:2"]) == [names[0], names[2]]
    with pytest.raises(CannotRepair, match="There is no topic paid"):
        scope(ToEarliest(), set(), cluster, ["paid"])
    for number in ("3", "x", "", "²", "9" * 5_000):
        with pytest.raises(CannotRepair, match="orders has no partition"):
            scope(ToEarliest(), set(), cluster, [f"orders:{number},0"])


@pytest.mark.parametrize(
    "text", ["2026-11-16T02:18:03.500", "2026-11-16T02:18:03.500Z", "2026-11-16T03:18:03.500+01:00"]
)
def test_a_time_is_utc_unless_it_has_a_zone(text: str) -> None:
    """As in Kafka's own tool."""
    assert parse_time(text) == 1794795483500


@pytest.mark.parametrize("text", ["yesterday", "", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_what_is_no_time_is_said(text: str) -> None:
    """With one that would do."""
    with pytest.raises(CannotRepair, match="is no time"):
        parse_time(text)
