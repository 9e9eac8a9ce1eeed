"""group_health: how groups stand, whoever knows of them."""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kelpie.pipeline.transforms.health import health, shown
from tests.pipeline.rows import at, commit, frame

_CASES = (
    "cluster string, group string, offsets_partition int, state string, member_count int, "
    "known_from array<string>, is_listed boolean"
)


def seen(look: int, group: str, partition: int, offset: int) -> dict[str, Any]:
    """What a survey tells."""
    return {
        "at": at(look),
        "snapshot": f"survey {look}",
        "kind": "committed",
        "group": group,
        "topic": "t",
        "partition": partition,
        "ordinal": partition,
        "body": f'{{"offset": {offset}}}',
    }


def test_partitions_are_counted_also_of_groups_that_only_surveys_know(spark: SparkSession) -> None:
    """By the newest look at the group; where its commits were read, by these: what was removed is gone."""
    commits = [commit(1, 10, group="both"), commit(2, None, group="both", partition=1)]
    looks = [
        *(seen(1, "surveyed", partition, 5) for partition in range(4)),
        *(seen(2, "surveyed", partition, 7) for partition in range(3)),
        seen(2, "surveyed", 3, -1),
        seen(2, "both", 0, 10),
        seen(2, "both", 1, 20),
        seen(2, "both", 2, 30),
    ]
    no_errors: list[str] = []
    cases = [("c", group, 0, "Stable", 1, no_errors, True) for group in ("surveyed", "both", "neither")]
    rows = health(
        spark.createDataFrame(cases, _CASES),
        findings=frame(spark, "findings", []),
        generations=frame(spark, "group_generation", []),
        rebalances=frame(spark, "rebalance", []),
        timeline=frame(spark, "commit_timeline", commits),
        lag=frame(spark, "lag", []),
        shown=shown(frame(spark, "cluster_snapshot", looks)),
        now=F.lit(at(9)),
    )
    found = {row["group"]: row["partitions"] for row in rows.collect()}
    assert found == {"surveyed": 3, "both": 2, "neither": 0}
