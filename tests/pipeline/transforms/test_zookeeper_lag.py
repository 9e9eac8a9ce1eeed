"""Lag of groups that ZooKeeper keeps: when an offset counts, and which one."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kelpie.observations import LogEnds, ZooKeeperGroup
from kelpie.observations.encoding import dumps
from kelpie.observations.zookeeper_groups import StoredOffset
from kelpie.pipeline.transforms.commits import timeline
from kelpie.pipeline.transforms.lag import ends, held, lags, surveyed_positions
from kelpie.pipeline.transforms.zookeeper.offsets import kept_offsets
from tests.pipeline.rows import NOON, at, commit, frame

NOON_MS = int(NOON.timestamp()) * 1000


def ms(seconds: float) -> int:
    return NOON_MS + int(seconds * 1000)


def dump(
    seconds: float, offset: int, written: float | None = None, group: str = "g", partition: int = 0
) -> dict[str, Any]:
    """A look at a group that has committed this offset, at this time; None: the output of a tool."""
    stored = StoredOffset("t", partition, offset, None if written is None else ms(written))
    row = ZooKeeperGroup(group, (), (), (stored,), ms(seconds), "dump")
    body = dumps(row)
    return {"kind": "zookeeper-group", "group": group, "at": at(seconds), "body": body, "snapshot": "dump"}


def end(seconds: float, offset: int, partition: int = 0) -> dict[str, Any]:
    body = dumps(LogEnds("t", partition, 0, offset, at=ms(seconds)))
    place = {"topic": "t", "partition": partition, "at": at(seconds), "snapshot": "tool"}
    return {"kind": "ends", "body": body, **place}


Told = dict[str, list[tuple[str, float, int, int]]]
"""By cluster: (group, second, offset, lag) of each row of lag."""


SCENES: list[tuple[list[dict[str, Any]], list[tuple[str, float, int, int]]]] = [
    # Written at 0, seen at 100: it counted all the time between, and a moment before and after.
    (
        [dump(100, 5, written=0), *(end(second, 9) for second in (-20, -5, 0, 60, 105, 120))],
        [("g", -5, 5, 4), ("g", 0, 5, 4), ("g", 60, 5, 4), ("g", 105, 5, 4)],
    ),
    # Between two dumps, what was written before the second counts; before that nothing is known.
    (
        [
            dump(0, 5, written=-1),
            dump(100, 8, written=50),
            end(30, 9),
            end(45, 9),
            end(50, 9),
            end(99, 20),
        ],
        [("g", 45, 8, 1), ("g", 50, 8, 1), ("g", 99, 8, 12)],
    ),
    # A moment after one dump, a moment before the next write: the one that is known to have counted.
    (
        [dump(0, 5, written=-1), dump(30, 8, written=12), end(9, 9), end(11, 9)],
        [("g", 9, 5, 4), ("g", 11, 8, 1)],
    ),
    # A tool says offset and end at the same time, and not when the offset was written.
    ([dump(60, 7), end(60, 9), end(30, 9)], [("g", 60, 7, 2)]),
    # A tool in between says nothing new, and takes nothing from what the dump says.
    ([dump(50, 5), dump(100, 5, written=0), end(50, 8), end(80, 9)], [("g", 50, 5, 3), ("g", 80, 5, 4)]),
    # Read further than the end that was looked at before: nothing is left to read.
    ([dump(60, 12, written=59), end(55, 9)], [("g", 55, 12, 0)]),
    # Each partition and each group has its own.
    (
        [
            dump(60, 7),
            dump(60, 2, group="h"),
            dump(60, 1, partition=1),
            end(60, 9),
            end(60, 3, partition=1),
        ],
        [("g", 60, 1, 2), ("g", 60, 7, 2), ("h", 60, 2, 7)],
    ),
    # ZooKeeper's clock is ahead of the one that dated the dump.
    ([dump(60, 7, written=300), end(60, 9), end(200, 9)], [("g", 60, 7, 2)]),
    # No end of the log was ever looked at: the lag is not known, and not 0.
    ([dump(60, 7)], []),
]
MOVED = "moved"


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> Told:
    """Each scene is a cluster, and all are one query: its plan costs more than its rows."""
    scenes = {str(number): rows for number, (rows, _) in enumerate(SCENES)}
    scenes[MOVED] = [dump(60, 7), dump(60, 7, group="old"), end(60, 9)]
    snapshot = frame(
        spark,
        "cluster_snapshot",
        [
            {"ordinal": ordinal, **row, "cluster": cluster}
            for cluster, rows in scenes.items()
            for ordinal, row in enumerate(rows)
        ],
    )
    commits = [commit(1, 8, group="g", topic="t", partition=0, cluster=MOVED)]
    of_kafka = timeline(frame(spark, "offset_commit", commits), frame(spark, "transaction_marker", []))
    made = lags(
        held(of_kafka), ends(snapshot), surveyed=surveyed_positions(snapshot), kept=kept_offsets(snapshot)
    )
    plain = NOON.replace(tzinfo=None)
    found: Told = {cluster: [] for cluster in scenes}
    for row in made.collect():
        second = (row["at"] - plain).total_seconds()
        found[row["cluster"]].append((row["group"], second, row["offset"], row["lag"]))
    return {cluster: sorted(rows) for cluster, rows in found.items()}


@pytest.mark.parametrize("number", range(len(SCENES)))
def test_an_offset_of_zookeeper_counts_while_it_is_known_to(told: Told, number: int) -> None:
    """Offsets between two dumps are unknown: a lag that rests on an old one would be too large."""
    assert told[str(number)] == SCENES[number][1]


def test_commits_in_kafka_count_before_offsets_in_zookeeper(told: Told) -> None:
    """A group that has moved to Kafka leaves its old offsets behind; no position has two lags."""
    assert told[MOVED] == [("g", 60, 8, 1), ("old", 60, 7, 2)]
