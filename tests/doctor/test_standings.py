"""Where groups stand in all partitions at once: exactly what a track of each partition says."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kelpie.doctor.case import Case
from kelpie.doctor.group_positions import LastOffsets, Positions
from kelpie.doctor.overview import StandingRows, group_overview, partitions_of
from kelpie.doctor.standings import standing_of
from kelpie.model.names import TopicPartition
from kelpie.observations import LogEnds
from kelpie.observations.group_offsets import GroupCommits, GroupOffsets
from tests.doctor.building import MINUTE, NOW, SECOND, a_case, a_cluster, a_member, a_state, an_end

NAMES = (TopicPartition("orders", 1), TopicPartition("orders", 0))
TIMES = (
    NOW - 30 * MINUTE,
    NOW - 5 * MINUTE,
    NOW - MINUTE,
    NOW - 50 * SECOND,
    NOW - SECOND,
    NOW,
    NOW + SECOND,
)
offsets = st.tuples(*[st.sampled_from([90, 95, 100, 110])] * 2)
times = st.sampled_from(TIMES)


def _told(
    values: tuple[int, ...], at: int | None = NOW, names: tuple[TopicPartition, ...] = NAMES
) -> GroupOffsets:
    return GroupOffsets("billing", names, values, (4,) * len(names), ("",) * len(names), at, "broker 1")


def _commit(
    values: tuple[int, ...],
    at: int | None = NOW,
    names: tuple[TopicPartition, ...] = NAMES[::-1],
    topic_id: str = "",
) -> GroupCommits:
    same = (4,) * len(names), ("",) * len(names), (topic_id,) * len(names)
    return GroupCommits("billing", names, values, *same, at, False, "__consumer_offsets-7", range(len(names)))


def _ends(*rows: tuple[int, tuple[int, ...]], stable: int | None = None) -> list[LogEnds]:
    """By time, of both partitions."""
    return [
        an_end(
            latest, partition=name.partition, at=at, stable=min(latest, latest if stable is None else stable)
        )
        for at, by_partition in rows
        for name, latest in zip(NAMES, by_partition, strict=True)
    ]


def _case(
    ends: list[LogEnds], commits: list[GroupCommits], looks: list[GroupOffsets], **fields: object
) -> Case:
    return a_case(
        cluster=a_cluster(ends=ends),
        committed=LastOffsets(looks[-1]),
        commits=Positions(commits),
        committed_over_time=Positions(looks),
        **fields,  # type: ignore[arg-type]
    )


def _one_by_one(case: Case) -> Case:
    """The same, with rows that came one by one: each partition is looked at by itself."""
    return replace(
        case,
        committed=dict(case.committed),
        commits=dict(case.commits),
        committed_over_time=dict(case.committed_over_time),
    )


@given(
    st.lists(st.tuples(times, offsets), min_size=1, max_size=4),
    st.lists(st.tuples(offsets, times), max_size=4),
    st.lists(st.tuples(offsets, times), min_size=1, max_size=4),
    st.sampled_from([None, 92, 105]),
    st.booleans(),
)
def test_all_partitions_at_once_are_what_each_is_by_itself(
    ends: list[tuple[int, tuple[int, int]]],
    commits: list[tuple[tuple[int, int], int]],
    looks: list[tuple[tuple[int, int], int]],
    stable: int | None,
    has_members: bool,
) -> None:
    """Offset, lag, its age, its trend, the last commit and who reads it: to the last digit."""
    states = [a_state("Stable", a_member("one", 0), a_member("two", 1))] if has_members else []
    case = _case(
        _ends(*sorted(ends), stable=stable),
        [_commit(*each) for each in sorted(commits, key=lambda each: each[1])],
        [_told(*each) for each in sorted(looks, key=lambda each: each[1])],
        states=states,
    )
    rows, expected = partitions_of(case), partitions_of(_one_by_one(case))
    assert isinstance(rows, StandingRows)
    assert not isinstance(expected, StandingRows)
    assert list(rows) == expected
    assert group_overview(case, rows, None) == group_overview(_one_by_one(case), expected, None)


def test_groups_at_the_same_offsets_that_did_not_move_share_a_standing() -> None:
    """That is what makes thousands of idle groups cheap; one that moved meanwhile has its own."""
    ends = _ends((NOW - 2 * MINUTE, (90, 90)), (NOW, (100, 100)))
    looks = [_told((90, 90), NOW - 10 * MINUTE), _told((90, 90))]
    one = _case(ends, [], looks)
    other = replace(one, group="audit")
    moved = replace(one, committed_over_time=Positions([_told((80, 90), NOW - 10 * MINUTE), _told((90, 90))]))
    assert standing_of(one) is standing_of(other)
    found = standing_of(moved)
    assert found is not None
    assert found is not standing_of(one)
    assert list(partitions_of(moved)) == partitions_of(_one_by_one(moved))


def test_new_groups_at_the_same_offsets_share_a_standing() -> None:
    """Nothing is known of them at the times of earlier ends, so they have no trend; older groups have one."""
    ends = _ends((NOW - 2 * MINUTE, (90, 90)), (NOW - MINUTE, (95, 95)), (NOW, (100, 100)))
    new = _case(ends, [_commit((90, 90), NOW - 20 * SECOND)], [_told((90, 90))])
    other = replace(new, group="audit")
    old = replace(new, group="old", commits=Positions([_commit((90, 90), NOW - 10 * MINUTE)]))
    between = replace(new, group="between", commits=Positions([_commit((90, 90), NOW - 90 * SECOND)]))
    found = [standing_of(case) for case in (new, other, old, between)]
    assert found[0] is found[1]
    changes = [standing.lag.change for standing in found if standing is not None]
    assert changes[:2] == [None, None]
    assert None not in changes[2:]
    for case in (new, other, old, between):
        assert list(partitions_of(case)) == partitions_of(_one_by_one(case))


def test_rows_that_are_not_plain_are_looked_at_one_by_one() -> None:
    """A removed offset, a row without a time, another partition, another topic, an end that is not known."""
    ends = _ends((NOW, (100, 100)))
    looks = [_told((90, 90))]
    others = (TopicPartition("orders", 0), TopicPartition("orders", 2))
    assert standing_of(_case(ends, [_commit((90, 90))], looks)) is not None
    assert standing_of(_case(ends, [_commit((-1, 90))], looks)) is None
    assert standing_of(_case(ends, [_commit((90, 90), None)], looks)) is None
    assert standing_of(_case(ends, [_commit((90, 90), names=others)], looks)) is None
    assert standing_of(_case(ends, [_commit((90, 90), topic_id="of another topic")], looks)) is None
    assert standing_of(_case(ends[:1], [], looks)) is None
    assert standing_of(_case(ends, [], looks, states=[a_state("Stable", a_member("one", 0))])) is not None
    alone = a_state("Stable", a_member("one", 0, topic="payments"))
    assert standing_of(_case(ends, [], looks, states=[alone])) is None
