"""KLP211: a subscribed partition that no member of a stable group has."""

from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.partition_assigned_to_nobody import judge
from kelpie.observations import GroupState, LogEnds
from tests.doctor.building import (
    MINUTE,
    NOW,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_end,
    an_offsets_topic,
    found,
    looks,
    missing,
)

TOPIC = [a_view(partition, 1, topic="orders") for partition in range(3)]
EARLIER = NOW - 10 * MINUTE


def _state(at: int, *assigned: int, state: str = "Stable", **fields: Any) -> GroupState:
    return a_state(state, a_member("app-1", *assigned), at=at, **fields)


def _case(*states: GroupState, ends: tuple[LogEnds, ...] = (), **fields: Any) -> Case:
    seen = ends or (an_end(0, partition=2, at=EARLIER), an_end(0, partition=2))
    return a_case(cluster=a_cluster(*an_offsets_topic(), *TOPIC, ends=seen), states=states, **fields)


def test_a_partition_that_two_surveys_saw_without_a_member_is_a_warning() -> None:
    finding = found(judge(_case(_state(EARLIER, 0, 1), _state(NOW, 0, 1))))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "In group billing, no member is assigned orders-2, which it subscribes to, for 10 min at least."
    )
    assert finding.partitions == ("orders-2",)


def test_with_records_that_wait_it_is_critical() -> None:
    """The group has read it before, and nobody does now."""
    ends = (an_end(700, partition=2, at=EARLIER), an_end(900, partition=2))
    rows = looks(a_committed(700, partition=2))
    finding = found(judge(_case(_state(EARLIER, 0, 1), _state(NOW, 0, 1), ends=ends, **rows)))
    assert finding.severity is Severity.CRITICAL
    assert "200 records wait there" in finding.summary


def test_a_partition_that_was_just_added_is_undetermined() -> None:
    """Near miss: consumers see it within 5 min."""
    ends = (an_end(0, partition=2, at=NOW - MINUTE), an_end(0, partition=2))
    case = _case(_state(EARLIER, 0, 1), _state(NOW - MINUTE, 0, 1), _state(NOW, 0, 1), ends=ends)
    assert missing(judge(case))[0].startswith("whether orders-2 gets a member")


def test_a_rebalance_in_between_begins_the_count_anew() -> None:
    """Near miss: a rolling restart. The member that had it has just gone."""
    case = _case(_state(EARLIER, 0, 1), _state(NOW - MINUTE, 0, 1, 2), _state(NOW, 0, 1))
    assert missing(judge(case))
    busy = _state(NOW - MINUTE, 0, 1, state="PreparingRebalance")
    assert missing(judge(_case(_state(EARLIER, 0, 1), busy, _state(NOW, 0, 1))))


def test_groups_whose_partitions_are_all_dealt_out_and_streams_are_left_alone() -> None:
    assert judge(_case(_state(EARLIER, 0, 1, 2), _state(NOW, 0, 1, 2))) is ABSENT
    assert judge(_case(_state(EARLIER, 0), _state(NOW, 0, protocol="stream"))) is ABSENT


def test_without_the_members_or_their_subscriptions_it_is_undetermined() -> None:
    """Too little data."""
    assert missing(judge(_case()))
    unknown = a_state("Stable", a_member("app-1", 0, subscribed=None))
    assert missing(judge(_case(unknown))) == ("what its members subscribe to and are assigned",)
