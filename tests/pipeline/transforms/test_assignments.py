"""Which group had a partition, from when to when: of the offsets topic, of surveys, of logs."""

import json
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from kelpie.pipeline.transforms.assignments import assigned
from tests.pipeline.rows import at, frame


def naive(second: float) -> datetime:
    """Spark hands out times without a zone."""
    return at(second).replace(tzinfo=None)


def a_generation(number: int, began: float, ended: float | None, *partitions: int) -> dict[str, Any]:
    members = [{"member_id": "m", "assigned": [{"topic": "t", "partition": each} for each in partitions]}]
    return {
        "group": "g",
        "incarnation": 0,
        "generation": number,
        "began": at(began),
        "ended": None if ended is None else at(ended),
        "roster": members if partitions else [],
    }


def a_commit(group: str, second: float, home: int = 0) -> dict[str, Any]:
    place = {"group": group, "topic": "t", "partition": 0, "offsets_partition": home}
    return {**place, "log_offset": int(second), "committed": at(second), "offset": 1}


def a_state(second: float, *partitions: int) -> dict[str, Any]:
    positions = [{"topic": "t", "partition": each} for each in partitions]
    body = json.dumps(
        {"group": "s", "state": "Stable", "members": [{"member_id": "m", "assigned": positions}]}
    )
    name = f"survey {second:05}"
    return {"kind": "state", "group": "s", "at": at(second), "snapshot": name, "ordinal": 1, "body": body}


def an_event(kind: str, second: float, partitions: str) -> dict[str, Any]:
    more = {"source": "app.log", "line": int(second), "text": "", "client_id": "a"}
    return {"kind": kind, "group": "l", "at": at(second), "details": {"partitions": partitions}, **more}


def test_intervals_of_all_sources(spark: SparkSession) -> None:
    """Generations that follow each other are one interval; the last one holds until the topic was read."""
    generations = [
        a_generation(1, 0, 100, 0, 1),
        a_generation(2, 100, 200, 0),
        a_generation(3, 200, 300, 1),
        a_generation(4, 300, None, 0),
    ]
    surveys = [a_state(0, 0), a_state(30, 0, 1), a_state(60, 1), a_state(2000, 1)]
    events = [
        an_event("assigned", 10, "[t-0, a.b-c-12]"),
        an_event("revoked", 70, "t-0"),
        an_event("assigned", 90, "[]"),
    ]
    rows = assigned(
        frame(spark, "group_generation", generations),
        # Another group of the same partition of the offsets topic shows how far that was read.
        frame(spark, "commit_timeline", [a_commit("g", 250), a_commit("h", 400), a_commit("x", 900, home=1)]),
        snapshot=frame(spark, "cluster_snapshot", surveys),
        log_events=frame(spark, "log_event", events),
    ).collect()
    told = {
        (row["group"], row["topic"], row["partition"], row["is_certain"], row["began"], row["ended"])
        for row in rows
    }
    assert told == {
        ("g", "t", 0, True, naive(0), naive(200)),
        ("g", "t", 0, True, naive(300), naive(400)),
        ("g", "t", 1, True, naive(0), naive(100)),
        ("g", "t", 1, True, naive(200), naive(300)),
        ("s", "t", 0, True, naive(0), naive(30)),
        ("s", "t", 0, False, naive(30), naive(60)),
        ("s", "t", 1, True, naive(30), naive(60)),
        ("s", "t", 1, False, naive(60), naive(660)),
        ("s", "t", 1, False, naive(2000), naive(2000)),
        ("l", "t", 0, False, naive(10), naive(70)),
        ("l", "a.b-c", 12, False, naive(10), naive(10)),
    }
