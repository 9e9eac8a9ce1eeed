"""group_generation and membership_interval."""

from base64 import b64encode
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.transforms.commits import once
from kelpie.pipeline.transforms.epochs import EPOCH, epochs, epochs_here
from kelpie.pipeline.transforms.generations import generations, memberships
from tests.pipeline.rows import at, commit, frame, generation
from tests.pipeline.scenes import Rows, Scenes, by_group
from tests.pipeline.transforms import kip848
from tests.pipeline.transforms.kip848 import ORDERS, PAYMENTS, goes, two_join, written

SCENES = Scenes()
Found = tuple[dict[str, Rows], dict[str, Rows]]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Found:
    """Generations and memberships, by group."""
    known = {"kind": "topic-id", "topic": "payments", "body": b64encode(PAYMENTS).decode(), "snapshot": "s"}
    made = generations(
        frame(spark, "group_metadata", SCENES.rows("group_metadata")),
        frame(spark, "offset_commit", SCENES.rows("offset_commit")),
        frame(spark, "cluster_snapshot", [{**known, "ordinal": 0}]),
    ).cache()
    members = memberships(made, frame(spark, "log_event", SCENES.rows("log_event")))
    return (
        by_group(made.collect(), lambda row: (row["incarnation"], row["generation"])),
        by_group(members.collect(), lambda row: (row["member_id"], row["began"])),
    )


def plain(seconds: float) -> datetime:
    return at(seconds).replace(tzinfo=None)


def picked(rows: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def positions(rows: Rows) -> list[tuple[str, int]]:
    return [(it["topic"], it["partition"]) for it in rows]


SUCCESSION = SCENES.add("succession", group_metadata=[generation(1, 1, "a"), generation(5, 2, "a", "b")])


def test_generation_ends_where_the_next_begins(found: Found) -> None:
    """And the last one has no end."""
    assert picked(found[0][SUCCESSION], "generation", "began", "ended") == [
        (1, plain(1), plain(5)),
        (2, plain(5), None),
    ]


REMOVAL = {"log_offset": 3, "written": at(3), "is_removal": True}
REMOVED = SCENES.add(
    "removed",
    group_metadata=[
        generation(1, 0),
        generation(2, 1, "a"),
        REMOVAL,
        generation(4, 0),
        generation(5, 1, "b"),
    ],
)


def test_removed_group_begins_a_new_life(found: Found) -> None:
    """Generations are not monotone: after a tombstone they count from 0 again."""
    assert picked(found[0][REMOVED], "incarnation", "generation") == [(0, 0), (0, 1), (1, 0), (1, 1)]


TIMELESS = SCENES.add(
    "timeless",
    group_metadata=[generation(2, 1, "a", written=None), generation(4, 2, "a", written=None)],
    offset_commit=[commit(1, 10), commit(3, 11)],
)


def test_records_without_time_take_that_of_the_newest_commit(found: Found) -> None:
    """Kafka 0.9 wrote no time beside its records."""
    assert picked(found[0][TIMELESS], "began") == [(plain(1),), (plain(3),)]


RELAY = SCENES.add(
    "relay", group_metadata=[generation(1, 1, "a"), generation(2, 2, "a", "b"), generation(3, 3, "b")]
)


def test_member_is_there_from_its_first_generation_to_the_first_without_it(found: Found) -> None:
    """Who is there in the last generation is still there; why somebody left, only logs tell."""
    names = ("member_id", "began", "ended", "first_generation", "last_generation", "left_because")
    assert picked(found[1][RELAY], *names) == [
        ("a", plain(1), plain(3), 1, 2, "unknown"),
        ("b", plain(2), None, 2, 3, None),
    ]


NEWER = SCENES.add("newer", group_metadata=two_join("newer"))


def test_epoch_of_a_newer_group_is_a_generation(found: Found) -> None:
    """It begins with its record, and is settled once the last member has what it should have."""
    first, second = found[0][NEWER]
    assert picked([first, second], "generation", "began", "ended", "settled") == [
        (2, plain(1), plain(5), plain(1)),
        (3, plain(5), None, plain(8)),
    ]
    assert (second["kind"], second["members"], second["log_offset"]) == ("consumer", 2, 6)
    assert {(it["member_id"], it["epoch"]): positions(it["owned"]) for it in second["roster"]} == {
        ("a", 3): [("orders", 0)],
        ("b", 3): [("orders", 1)],
    }


OVERTAKEN = SCENES.add(
    "overtaken",
    group_metadata=written(
        (1, [kip848.member("a", "t"), kip848.epoch(1), kip848.target("a", ORDERS, 0), kip848.computed(1)]),
        (1, [kip848.current("a", 1, ORDERS, 0)]),
        (5, [kip848.member("b", "t"), kip848.epoch(2), kip848.current("b", 1)]),
        (6, goes("b", 3)),
        (9, [kip848.computed(3), kip848.current("a", 3, ORDERS, 0)]),
        group="overtaken",
    ),
)


def test_epoch_that_was_overtaken_is_settled_with_the_one_that_overtook_it(found: Found) -> None:
    """A member came and went before the others had even heard of it."""
    assert picked(found[0][OVERTAKEN], "generation", "member_ids", "settled") == [
        (1, ["a"], plain(1)),
        (2, ["a", "b"], plain(9)),
        (3, ["a"], plain(9)),
    ]


AT_ONCE = SCENES.add(
    "at once",
    group_metadata=written(
        (1, [kip848.member("a", "t"), kip848.epoch(1)]),
        (1, [kip848.member("b", "t"), kip848.epoch(2)]),
        (1, goes("a", 3)),
        group="at once",
    ),
)


def test_epochs_within_a_millisecond_are_told_apart(found: Found) -> None:
    """What was written at once is told by time; members tell where the next write begins."""
    assert picked(found[0][AT_ONCE], "generation", "member_ids") == [(1, ["a"]), (2, ["a", "b"]), (3, ["b"])]


NAMED = SCENES.add(
    "named",
    group_metadata=written(
        (1, [kip848.member("a", "orders", "payments"), kip848.epoch(1), kip848.computed(1)]),
        (1, [kip848.target("a", ORDERS, 0), kip848.current("a", 1, PAYMENTS, 7)]),
        group="named",
    ),
)


def test_topics_are_named_where_somebody_knows_their_names(found: Found) -> None:
    """Records know ids only; of two topics it cannot be guessed which is which."""
    ((one,),) = (row["roster"] for row in found[0][NAMED])
    assert positions(one["owned"]) == [("payments", 7)]
    assert positions(one["assigned"]) == [("b29vb29vb29vb29vb29vbw", 0)]


CONVERTED = SCENES.add(
    "converted",
    group_metadata=[
        generation(1, 1, "a"),
        {"log_offset": 2, "written": at(5), "is_removal": True},
        *written((5, [kip848.member("a", "t"), kip848.epoch(2)]), first=3, group="converted"),
        *written((9, [kip848.epoch(None)]), first=6, group="converted"),
        generation(8, 1, "b"),
    ],
)


def test_group_that_goes_over_to_the_newer_protocol_lives_on(found: Found) -> None:
    """Its classic record is deleted in the same write; a group that is deleted begins anew."""
    assert picked(found[0][CONVERTED], "incarnation", "generation", "kind") == [
        (0, 1, "classic"),
        (0, 2, "consumer"),
        (1, 1, "classic"),
    ]


SILENT = SCENES.add(
    "silent",
    group_metadata=[*two_join("silent"), *written((9, goes("b", 4)), first=50, group="silent")],
    log_event=[{"kind": "broker: member-expired", "member": "b", "at": at(9), "line": 1, "text": ""}],
)


def test_membership_tells_what_a_member_had_and_why_it_left(found: Found) -> None:
    """Logs of brokers tell the reason, records everything else."""
    rows = found[1][SILENT]
    assert picked(rows, "member_id", "ended", "left_because") == [
        ("a", None, None),
        ("b", plain(9), "expired"),
    ]
    assert [positions(row["assigned"]) for row in rows] == [[("orders", 0)], [("orders", 1)]]


def test_driver_and_tasks_fold_the_same_epochs(spark: SparkSession) -> None:
    """The driver folds the records of few groups."""
    records = once(frame(spark, "group_metadata", SCENES.rows("group_metadata"))).toArrow()
    of_tasks = epochs(spark.createDataFrame(records)).toArrow().cast(EPOCH)
    here = epochs_here(records)
    assert here.num_rows
    assert sorted(map(repr, here.to_pylist())) == sorted(map(repr, of_tasks.to_pylist()))
    assert epochs_here(records.slice(0, 0)).schema == EPOCH
