"""group_health: one row per group with its state at the end of what is known. The driver holds them all."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.diagnosis.kept_snapshots import newest_committed
from kelpie.pipeline.diagnosis.recent import positions
from kelpie.pipeline.ordering import ends, keys, numbers, rows_by_group

_POSITION = ["group", "topic", "partition"]
_RANK = ("notice", "warning", "critical")
Position = tuple[str, str, int]
Row = Mapping[str, Any]


def health(
    groups: Iterable[Row],
    *,
    findings: Iterable[Row],
    commits: pa.Table,
    shown: Mapping[str, Iterable[Position]],
    lag: pa.Table,
    generations: pa.Table,
    rebalances: pa.Table,
) -> list[dict[str, Any]]:
    """Rows of group_health. `groups`: of judged_group. `lag`: of newest_lag.

    `commits`: as `recent_commits` leaves them.
    `shown`: see the function of that name. Of `generations` the group, incarnation, generation and members
    are needed, of `rebalances` the group.
    """
    committed, last_commit = _committed(commits)
    behind, ages = _behind(lag)
    epochs = _epochs(generations)
    counts = rows_by_group(rebalances)
    codes: dict[str, set[str]] = {}
    worst: dict[str, int] = {}
    for finding in findings:
        if finding["group"] is not None:
            codes.setdefault(finding["group"], set()).add(finding["code"])
            rank = _RANK.index(finding["severity"])
            worst[finding["group"]] = max(rank, worst.get(finding["group"], rank))
    rows = []
    for each in groups:
        group = each["group"]
        # Positions come from commits that were read; where there are none, from snapshots.
        positions = committed.get(group, {})
        more = sum(position not in positions for position in shown.get(group, ()))
        generation, members = epochs.get(group, (None, None))
        rows.append(
            {
                "cluster": each["cluster"],
                "group": group,
                "at": each["at"],
                "offsets_partition": each["offsets_partition"],
                "state": each["state"],
                "members": members if each["member_count"] is None else each["member_count"],
                "generation": generation,
                "rebalances": counts.get(group, 0),
                "last_commit": last_commit.get(group),
                "partitions": sum(positions.values()) + more,
                "lag": behind.get(group),
                "lag_ms": ages.get(group),
                "worst": _RANK[worst[group]] if group in worst else None,
                "findings": sorted(codes.get(group, ())),
                "known_from": each["known_from"],
                "is_listed": each["is_listed"],
            }
        )
    return rows


def shown(snapshots: pa.Table) -> dict[str, list[Position]]:
    """By group, the positions with an offset in the newest snapshot that has some of the group.

    `snapshots`: of cluster_snapshot, or of kept_snapshot.
    """
    committed = snapshots.filter((pc.field("kind") == "committed") & pc.field("group").is_valid())
    positions: dict[str, list[Position]] = {}
    if committed.num_rows:
        newest = committed.filter(pa.array(newest_committed(committed)))
        for row in newest.select(["group", "topic", "partition", "body"]).to_pylist():
            if (json.loads(row["body"]).get("offset") or 0) >= 0:
                positions.setdefault(row["group"], []).append((row["group"], row["topic"], row["partition"]))
    return {group: list(dict.fromkeys(rows)) for group, rows in positions.items()}


def _committed(commits: pa.Table) -> tuple[dict[str, dict[Position, bool]], dict[str, Any]]:
    """By group, its positions, and whether each has an offset; and when it last committed."""
    by_group: dict[str, dict[Position, bool]] = {}
    if commits.num_rows:
        last = np.append(positions(commits)[1:], commits.num_rows) - 1
        for row in commits.select([*_POSITION, "offset"]).take(pa.array(last)).to_pylist():
            position = row["group"], row["topic"], row["partition"]
            by_group.setdefault(row["group"], {})[position] = row["offset"] is not None
    newest = commits.select(["group", "committed"]).group_by("group").aggregate([("committed", "max")])
    return by_group, dict(zip(newest["group"].to_pylist(), newest["committed_max"].to_pylist(), strict=True))


def _behind(lag: pa.Table) -> tuple[dict[str, int | None], dict[str, int | None]]:
    sums = lag.group_by("group").aggregate([("lag", "sum"), ("lag_ms", "max")])
    groups = sums["group"].to_pylist()
    return (
        dict(zip(groups, sums["lag_sum"].to_pylist(), strict=True)),
        dict(zip(groups, sums["lag_ms_max"].to_pylist(), strict=True)),
    )


def _epochs(generations: pa.Table) -> dict[str, tuple[int, int | None]]:
    """The last generation of each group, and how many members it has."""
    if not generations.num_rows:
        return {}
    group = keys(generations, ["group"])
    order = np.lexsort((numbers(generations["generation"]), numbers(generations["incarnation"]), group))
    last = generations.take(pa.array(order[ends(group[order])]))
    columns = (last[name].to_pylist() for name in ("group", "generation", "members"))
    return {group: (generation, members) for group, generation, members in zip(*columns, strict=True)}
