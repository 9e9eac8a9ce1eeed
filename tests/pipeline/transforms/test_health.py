"""group_health: how groups stand, whoever knows of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Row, SparkSession
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
    rows = _health(spark, ["surveyed", "both", "neither"], commits=commits, looks=looks)
    assert {row["group"]: row["partitions"] for row in rows} == {"surveyed": 3, "both": 2, "neither": 0}


def test_the_worst_finding_is_named_and_healthy_groups_have_none(spark: SparkSession) -> None:
    """A table that says "critical" of a healthy group is worse than none."""
    findings = [
        {"group": group, "code": code, "severity": severity}
        for group, code, severity in [
            ("hit", "KLP302", "warning"),
            ("hit", "KLP101", "critical"),
            ("late", "KLP204", "notice"),
        ]
    ]
    rows = _health(spark, ["hit", "late", "well", "well too"], findings=findings)
    assert {row["group"]: (row["worst"], row["findings"]) for row in rows} == {
        "hit": ("critical", ["KLP101", "KLP302"]),
        "late": ("notice", ["KLP204"]),
        "well": (None, []),
        "well too": (None, []),
    }


def _health(
    spark: SparkSession,
    groups: Sequence[str],
    *,
    findings: Sequence[Mapping[str, Any]] = (),
    commits: Sequence[Mapping[str, Any]] = (),
    looks: Sequence[Mapping[str, Any]] = (),
) -> list[Row]:
    no_errors: list[str] = []
    cases = [("c", group, 0, "Stable", 1, no_errors, True) for group in groups]
    return health(
        spark.createDataFrame(cases, _CASES),
        findings=frame(spark, "findings", findings),
        generations=frame(spark, "group_generation", []),
        rebalances=frame(spark, "rebalance", []),
        timeline=frame(spark, "commit_timeline", commits),
        lag=frame(spark, "lag", []),
        shown=shown(frame(spark, "cluster_snapshot", looks)),
        now=F.lit(at(9)),
    ).collect()
