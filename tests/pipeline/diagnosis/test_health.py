"""group_health: how groups stand, whoever knows of them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import kelpie.pipeline
from kelpie.pipeline.diagnosis.health import health, shown
from kelpie.pipeline.diagnosis.recent import recent_commits
from kelpie.pipeline.tables import STORED
from tests.pipeline.rows import at, commit


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


def test_partitions_are_counted_also_of_groups_that_only_surveys_know() -> None:
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
    rows = _health(["surveyed", "both", "neither"], commits=commits, looks=looks)
    assert {row["group"]: row["partitions"] for row in rows} == {"surveyed": 3, "both": 2, "neither": 0}


def test_the_worst_finding_is_named_and_healthy_groups_have_none() -> None:
    """A table that says "critical" of a healthy group is worse than none."""
    findings = [
        {"group": group, "code": code, "severity": severity}
        for group, code, severity in [
            ("hit", "KLP302", "warning"),
            ("hit", "KLP101", "critical"),
            ("late", "KLP204", "notice"),
        ]
    ]
    rows = _health(["hit", "late", "well", "well too"], findings=findings)
    assert {row["group"]: (row["worst"], row["findings"]) for row in rows} == {
        "hit": ("critical", ["KLP101", "KLP302"]),
        "late": ("notice", ["KLP204"]),
        "well": (None, []),
        "well too": (None, []),
    }


def test_no_transform_asks_for_an_element_by_a_place_that_may_be_null() -> None:
    """`element_at(array, NULL)` gives the last element: so healthy groups became critical."""
    folder = Path(kelpie.pipeline.__file__).parent
    unsafe = re.compile(r"(?<!try_)\belement_at\(")
    files = [path for path in folder.rglob("*.py") if unsafe.search(path.read_text())]
    assert not files


def _health(
    groups: Sequence[str],
    *,
    findings: Sequence[Mapping[str, Any]] = (),
    commits: Sequence[Mapping[str, Any]] = (),
    looks: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    known = {"cluster": "c", "at": at(9), "offsets_partition": 0, "state": "Stable", "member_count": 1}
    judged = [{**known, "group": group, "known_from": [], "is_listed": True} for group in groups]
    return health(
        judged,
        findings=findings,
        generations=_rows("group_generation"),
        rebalances=_rows("rebalance"),
        commits=recent_commits(_rows("recent_commit", commits)),
        lag=_rows("newest_lag"),
        shown=shown(_rows("cluster_snapshot", looks)),
    )


def _rows(name: str, rows: Sequence[Mapping[str, Any]] = ()) -> pa.Table:
    return pa.Table.from_pylist(list(rows), STORED[name].schema)
