"""rebalance: beginnings and reasons from logs, ends and members from records."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.transforms.generations import generations
from kelpie.pipeline.transforms.rebalances import rebalances
from tests.pipeline.rows import at, frame, generation
from tests.pipeline.scenes import Rows, Scenes, by_group
from tests.pipeline.transforms import kip848
from tests.pipeline.transforms.kip848 import goes, two_join, written

SCENES = Scenes()
Found = dict[str, Rows]


def event(seconds: float, kind: str, number: int, reason: str | None = None) -> dict[str, Any]:
    return {
        "at": at(seconds),
        "kind": f"broker: {kind}",
        "generation": number,
        "reason": reason,
        "line": int(seconds * 10),
        "text": "",
    }


def gone(seconds: float, member: str, kind: str = "member-left", reason: str = "") -> dict[str, Any]:
    return {**event(seconds, kind, 0, reason), "generation": None, "member": member}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Found:
    made = generations(
        frame(spark, "group_metadata", SCENES.rows("group_metadata")),
        frame(spark, "offset_commit", []),
        frame(spark, "cluster_snapshot", []),
    )
    rows = rebalances(made, frame(spark, "log_event", SCENES.rows("log_event"))).collect()
    return by_group(rows, lambda row: (row["started"], row["to_generation"]))


RECORDS = SCENES.add("records", group_metadata=[generation(1, 1, "a"), generation(9, 2, "b")])


def test_records_alone_tell_who_came_and_went(found: Found) -> None:
    """Most people have no brokers' logs at hand."""
    first, second = found[RECORDS]
    assert (first["joined"], first["left"], first["cause"]) == (["a"], [], "joined")
    assert (second["joined"], second["left"], second["cause"]) == (["b"], ["a"], "left")
    assert second["duration_ms"] is None
    assert second["from_generation"] == 1


REASON = "Removing member m on LeaveGroup; client reason: consumer poll timeout has expired."
LOGS = SCENES.add(
    "logs",
    group_metadata=[generation(9, 2, "b")],
    log_event=[event(5, "rebalance-started", 1, REASON), event(8.5, "assignment-received", 2)],
)


def test_logs_tell_since_when_and_why(found: Found) -> None:
    """The broker says that a member was too slow between polls."""
    (row,) = found[LOGS]
    assert (row["cause"], row["duration_ms"], row["reason"]) == ("poll-interval", 4000, REASON)


GOING_ON = SCENES.add(
    "going on",
    log_event=[event(5, "rebalance-started", 1, "removing member m on heartbeat expiration")],
)


def test_rebalance_that_goes_on_has_no_end(found: Found) -> None:
    """It began, and nothing came of it so far."""
    (row,) = found[GOING_ON]
    assert (row["ended"], row["duration_ms"], row["cause"]) == (None, None, "expired")


NEWER = SCENES.add(
    "newer",
    group_metadata=two_join("newer"),
    log_event=[{**event(6, "assignment-received", 3), "details": {"assignor": "uniform"}}],
)


def test_rebalance_of_a_newer_group_lasts_until_all_have_reached_its_epoch(found: Found) -> None:
    """Its records tell all of it; that the coordinator computed an assignment is not its end."""
    first, second = found[NEWER]
    assert (first["joined"], first["cause"], first["duration_ms"]) == (["a"], "joined", 0)
    assert (second["from_generation"], second["to_generation"]) == (2, 3)
    assert (second["joined"], second["left"], second["cause"]) == (["b"], [], "joined")
    assert second["duration_ms"] == 3000


SILENT = SCENES.add(
    "silent",
    group_metadata=[*two_join("silent"), *written((20, goes("b", 4)), first=50, group="silent")],
    log_event=[gone(20, "b", "member-expired")],
)


def test_log_tells_that_a_member_was_silent(found: Found) -> None:
    """Records only tell that it is gone."""
    last = found[SILENT][-1]
    assert (last["to_generation"], last["left"], last["cause"]) == (4, ["b"], "expired")
    assert last["ended"] is None


MORE = SCENES.add(
    "more",
    group_metadata=[
        *two_join("more"),
        *written((30, [kip848.epoch(4), kip848.computed(4)]), first=50, group="more"),
    ],
)


def test_new_epoch_without_anybody_coming_or_going_is_about_topics(found: Found) -> None:
    """A subscription changed, or a topic has more partitions."""
    assert found[MORE][-1]["cause"] == "subscription"


UNWRITTEN = SCENES.add(
    "unwritten",
    group_metadata=[generation(1, 1, "a", "b"), generation(9, 3, "a", "c")],
    log_event=[
        event(5, "rebalance-started", 1, "explicit `LeaveGroup` request for (b) members."),
        event(6, "rebalance-started", 2, "Adding new member c with group instance id null"),
    ],
)


def test_generation_that_left_no_record_ends_with_the_next_assignment(found: Found) -> None:
    """Somebody joined before the leader had assigned anything: that generation was never written."""
    _, second, third = found[UNWRITTEN]
    assert (second["cause"], second["duration_ms"], second["joined"]) == ("left", 4000, None)
    assert (third["cause"], third["duration_ms"], third["from_generation"]) == ("joined", 3000, 2)
    assert (third["joined"], third["left"]) == (["c"], ["b"])


LIVES = SCENES.add(
    "lives",
    group_metadata=[
        generation(1, 1, "a"),
        {"log_offset": 3, "written": at(3), "is_removal": True},
        generation(100, 1, "b"),
    ],
    log_event=[
        event(0.5, "rebalance-started", 0, "Adding new member a"),
        event(99, "rebalance-started", 0, "Adding new member b"),
    ],
)


def test_lives_of_a_group_are_not_mixed_up(found: Found) -> None:
    """It was removed and made anew: generation 1 was there twice."""
    assert [(row["duration_ms"], row["joined"]) for row in found[LIVES]] == [(500, ["a"]), (1000, ["b"])]


COOPERATIVE = SCENES.add(
    "cooperative",
    group_metadata=[
        generation(1, 1, "a", "b", protocol="cooperative-sticky"),
        generation(2, 2, "a", "b", protocol="cooperative-sticky"),
    ],
    log_event=[
        event(
            1.5,
            "rebalance-started",
            1,
            "Leader a re-joining group during Stable; client reason: not provided",
        )
    ],
)


def test_second_half_of_a_cooperative_rebalance_is_called_so(found: Found) -> None:
    """What some gave up in the first goes to others in the second; nobody came or went."""
    assert found[COOPERATIVE][-1]["cause"] == "rejoined"


PAUSED = SCENES.add(
    "paused",
    group_metadata=[generation(1, 1, "a-77aa", "b-4fc3"), generation(10, 2, "a-77aa"), generation(31, 3)],
    log_event=[
        {"kind": "poll-interval-exceeded", "client_id": "b", "at": at(8.9), "line": 1, "text": ""},
        gone(9, "b-4fc3", reason="not provided"),
        gone(30, "a-77aa", reason="not provided"),
        event(9, "rebalance-started", 1, "explicit `LeaveGroup` request for (b-4fc3) members."),
    ],
)


def test_consumer_says_itself_that_it_was_too_long_between_polls(found: Found) -> None:
    """librdkafka tells its coordinator no reason; its own log does, right before."""
    assert [row["cause"] for row in found[PAUSED]] == ["joined", "poll-interval", "left"]
