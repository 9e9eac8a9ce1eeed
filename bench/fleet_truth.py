"""What tables say of a cluster of a fleet, held against what is true: each difference as a line to read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from bench.fleet_evidence import Truth

SEVERE = ("warning", "critical")
_POSITION = ["group", "topic", "partition"]


def differences(lake: Path, cluster: str, truth: Truth) -> list[str]:
    """What the tables say of a cluster and is not so, or is so and they do not say."""
    kinds = (_findings, _groups, _outage, _rebalances, _commits)
    return [f"{cluster}: {line}" for kind in kinds for line in kind(lake, cluster, truth)]


def strangers(lake: Path, clusters: set[str]) -> list[str]:
    """Tables with rows of clusters that are not of the fleet."""
    found = []
    for log in sorted(lake.glob("*/*/_delta_log")):
        files = pa.table(DeltaTable(str(log.parent)).get_add_actions(flatten=True))
        named = files["partition.cluster"].to_pylist() if "partition.cluster" in files.column_names else []
        found += [f"{log.parent.name} has rows of a cluster {it}" for it in sorted(set(named) - clusters)]
    return found


def _findings(lake: Path, cluster: str, truth: Truth) -> Iterator[str]:
    rows = _table(lake, "gold/findings", cluster).to_pylist()
    told = {(row["code"], row["group"]): row["summary"] for row in rows if row["severity"] in SEVERE}
    lighter = {(row["code"], row["group"]): row["severity"] for row in rows}
    lacks = {
        (row["code"], row["group"]): row["missing"]
        for row in _table(lake, "gold/open_question", cluster).to_pylist()
    }
    for finding in sorted(truth.findings - told.keys(), key=str):
        code, group = finding
        why = f"; it is only a {lighter[finding]}" if finding in lighter else ""
        why += f"; the rule lacks {'; '.join(lacks[finding])}" if finding in lacks else ""
        yield f"MISSED {code} of {_named(group, truth)}{why}"
    for code, group in sorted(told.keys() - truth.findings, key=str):
        yield f"UNEXPECTED {code} of {_named(group, truth)}: {told[code, group]}"
    twice = len([row for row in rows if row["severity"] in SEVERE]) - len(told)
    if twice:
        yield f"{twice} findings are told twice"


def _named(group: str | None, truth: Truth) -> str:
    return (
        "the cluster" if group is None else f"{group} ({truth.fates.get(group, 'no group of this cluster')})"
    )


def _groups(lake: Path, cluster: str, truth: Truth) -> Iterator[str]:
    known = _table(lake, "gold/group_health", cluster)["group"].to_pylist()
    for group in sorted(truth.fates.keys() ^ set(known)):
        yield f"{_named(group, truth)} is {'not known' if group in truth.fates else 'known'}"
    if len(known) != len(set(known)):
        yield f"group_health has {len(known)} rows for {len(set(known))} groups"


def _outage(lake: Path, cluster: str, truth: Truth) -> Iterator[str]:
    rows = _table(lake, "gold/coordinator_outage", cluster).to_pylist()
    hit = {group for row in rows for group in row["groups"]}
    if hit != truth.outage:
        yield f"groups without a coordinator: {sorted(hit)}, and not {sorted(truth.outage)}"


def _rebalances(lake: Path, cluster: str, truth: Truth) -> Iterator[str]:
    counted: dict[str, dict[str, int]] = {}
    rows = (
        _table(lake, "silver/rebalance", cluster).group_by(["group", "cause"]).aggregate([([], "count_all")])
    )
    for row in rows.to_pylist():
        counted.setdefault(row["group"], {})[row["cause"]] = row["count_all"]
    for group, causes in sorted(truth.causes.items()):
        mine = counted.get(group, {})
        if mine != causes:
            yield f"rebalances of {_named(group, truth)} by cause: {mine}, and not {causes}"


def _commits(lake: Path, cluster: str, truth: Truth) -> Iterator[str]:
    rows = _table(lake, "silver/commit_timeline", cluster).select([*_POSITION, "log_offset", "offset"])
    newest = pc.ScalarAggregateOptions(skip_nulls=False)
    last = (
        rows.sort_by("log_offset")
        .group_by(_POSITION, use_threads=False)
        .aggregate([("offset", "last", newest)])
        .to_pylist()
    )
    known = {tuple(row[it] for it in _POSITION): row["offset_last"] for row in last}
    for position in sorted({*known, *truth.committed}):
        mine, theirs = known.get(position), truth.committed.get(position)
        if mine != theirs:
            where = f"{position[1]}-{position[2]}"
            yield f"the last commit of {_named(position[0], truth)} in {where} is {mine}, and not {theirs}"


def _table(lake: Path, name: str, cluster: str) -> Any:
    dataset = DeltaTable(str(lake / name)).to_pyarrow_dataset()
    return dataset.to_table(filter=pc.field("cluster") == cluster)
