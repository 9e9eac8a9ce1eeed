"""What is kept of a survey once there is a newer one: one definition for store, snapshots and tables."""

import json
import zlib

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Committed,
    GroupState,
    Listing,
    LogEnds,
    Member,
    Observations,
    PartitionView,
)
from kelpie.observations.earlier import (
    EARLIER_SURVEY,
    ONE_SURVEY_MS,
    best_views,
    earlier_rows,
    earlier_survey,
    pack,
    unpack,
)
from kelpie.observations.encoding import KINDS, rows_by_kind, write_columns

AT = 1_700_000_000_000
_WITHOUT_ASSIGNMENT = Member("m-0")
_MEMBER = Member("m-1", "m", "/h", None, ("t",), (TopicPartition("t", 0),), epoch=3)


def test_only_answers_without_error_count() -> None:
    """An error of an hour ago says nothing about now, except what may last: pending commits, denials."""
    refused = ErrorCode.NOT_COORDINATOR
    survey = Observations(
        states=[GroupState("g", "Stable", at=AT), GroupState("h", "", error=refused, at=AT)],
        committed=[
            Committed("g", "t", 0, 5, at=AT),
            Committed("g", "t", 1, -1, refused, at=AT),
            Committed("g", "t", 2, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT, at=AT),
        ],
        ends=[
            LogEnds("t", 0, 0, 9, at=AT),
            LogEnds("t", 1, error=6, at=AT),
            LogEnds("t", 2, latest=9, at=AT),
        ],
    )
    kept = earlier_survey(survey, AT)
    assert [row.group for row in kept.states] == ["g"]
    (denied,) = unpack(pack(rows_by_kind(kept)), AT).answers
    assert (denied.group, denied.asked, denied.error) == ("h", "DescribeGroups", refused)
    assert [row.partition for row in kept.committed] == [0, 2]
    assert [row.partition for row in kept.ends] == [0]


def test_a_broker_is_kept_with_its_address_and_not_as_alive() -> None:
    """Each survey finds out anew who is alive."""
    ((kind, broker),) = earlier_rows(
        "broker", BrokerView(1, "h", 9092, alive=True, reason="r", at=AT, source="s")
    )
    assert (kind, broker) == ("broker", BrokerView(1, "h", 9092, at=AT, source="s"))
    assert not list(earlier_rows("broker", BrokerView(1, alive=False)))


def test_listed_groups_are_known_from_the_survey() -> None:
    """Their names are what a later doctor misses."""
    rows = list(earlier_rows("listing", Listing(1, ("a", "b"), at=AT)))
    assert [(kind, row.group, row.source) for kind, row in rows] == [
        ("known", "a", "an earlier survey (2023-11-14 22:13 UTC)"),
        ("known", "b", "an earlier survey (2023-11-14 22:13 UTC)"),
    ]


def test_rows_of_the_surveys_before_are_left_out() -> None:
    """What was recalled is not kept as if it had been seen now."""
    old = AT - ONE_SURVEY_MS
    survey = Observations(committed=[Committed("g", "t", 0, 5, at=old), Committed("g", "t", 1, 6, at=None)])
    assert earlier_survey(survey, AT) == Observations()


def test_packed_rows_come_back_with_the_time_of_their_survey() -> None:
    """All of a row is kept, but its own source."""
    survey = Observations(
        brokers=[BrokerView(1, "h", 9092)],
        partitions=[PartitionView(OFFSETS_TOPIC, 0, 1, (1, 2), (1,), leader_epoch=4)],
        states=[
            GroupState("g\ud800", "Stable", members=(_WITHOUT_ASSIGNMENT, _MEMBER), coordinator=1),
            GroupState("empty", "Empty"),
            GroupState("h", "Stable", members=(_MEMBER,)),
        ],
        committed=[Committed("g", "t", 0, 5, leader_epoch=2, metadata="m", source="broker 1")],
        ends=[LogEnds("t", 0, 1, 9, 8, last_written=7)],
    )
    back = unpack(pack(rows_by_kind(survey)), AT)
    assert back.states == [state._replace(at=AT, source=EARLIER_SURVEY) for state in survey.states]
    assert back.committed == [survey.committed[0]._replace(at=AT, source=EARLIER_SURVEY)]
    assert back.ends == [survey.ends[0]._replace(at=AT, source=EARLIER_SURVEY)]
    assert back.partitions == [survey.partitions[0]._replace(at=AT, source=EARLIER_SURVEY)]
    assert unpack(pack([]), AT) == Observations()


def test_the_view_of_the_newest_leader_epoch_counts() -> None:
    """A broker that was cut off still names the leader of before; 0.9 knows no epochs, and omits the dead."""
    stale = PartitionView(OFFSETS_TOPIC, 0, 1, (1, 2, 3), (1, 2, 3), leader_epoch=4, told_by=1)
    new = PartitionView(OFFSETS_TOPIC, 0, 2, (1, 2, 3), (2,), leader_epoch=5, told_by=2)
    few = PartitionView(OFFSETS_TOPIC, 1, 3, (3,), (3,), told_by=1)
    all_replicas = PartitionView(OFFSETS_TOPIC, 1, 3, (3, 1), (3,), told_by=2)
    of_a_tool = PartitionView(OFFSETS_TOPIC, 2, 3, (3, 1), (3,))
    assert best_views([new, stale, few, all_replicas, of_a_tool]) == {0: new, 1: all_replicas}


def test_a_survey_that_was_packed_with_offsets_by_partition_is_read() -> None:
    """A store of earlier releases has them so."""
    rows = [
        Committed("billing", "orders", 0, 7, leader_epoch=2),
        Committed("billing", "orders", 1, 9, metadata="m"),
    ]
    columns = {"committed": write_columns(KINDS["committed"], rows, without=("at", "source"))}
    packed = zlib.compress(json.dumps(columns).encode())
    expected = [row._replace(at=AT, source=EARLIER_SURVEY) for row in rows]
    assert unpack(packed, AT).committed == expected
    assert unpack(pack([("committed", rows)]), AT).committed == expected
