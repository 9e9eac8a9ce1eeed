"""A fleet's evidence through the whole pipeline: every injected fault found, nothing found that was not.

Each cluster goes in as its folder is, into the same tables. Findings of warning and worse must be exactly
those of the truth, and the last commit of every group as well: none that was aborted or is still open, each
once though every record lies on two disks.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from bench.fleet_evidence import Fleet, Truth
from bench.measure import Ratio
from bench.tree import cost

SEVERE = ("warning", "critical")


def run(fleet: Fleet) -> tuple[list[list[str]], list[Ratio]]:
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        evidence, lake = Path(room) / "evidence", Path(room) / "lake"
        truths = fleet.write(evidence)
        found = cost([sys.executable, "-m", "bench.pipeline_fleet", str(evidence), str(lake)])
        wrong = [line for name, truth in truths.items() for line in differences(lake, name, truth)]
        assert not wrong, "\n".join(wrong)
    records = sum(truth.records for truth in truths.values())
    injected = sum(len(truth.findings) for truth in truths.values())
    what = (
        f"{fleet.clusters} clusters of {fleet.groups} groups, {fleet.days * 24:.1f} hours, to findings: all "
        f"{injected} that were injected, no other"
    )
    rows = [
        [
            what,
            f"{records:,}",
            f"{found.cpu_s:.1f}",
            f"{records / found.cpu_s / 1e6:.3f}",
            f"{found.peak_mib:.0f}",
        ]
    ]
    return rows, []


def differences(lake: Path, cluster: str, truth: Truth) -> list[str]:
    """What the tables say of a cluster and is not so, or is so and they do not say."""
    findings = _rows(lake, "gold/findings", cluster)
    told = {(row["code"], row["group"]) for row in findings if row["severity"] in SEVERE}
    missed, wrong = truth.findings - told, told - truth.findings
    found = [f"{cluster}: {code} of {group} was not found" for code, group in sorted(missed, key=str)]
    found += [f"{cluster}: {code} of {group} is not true" for code, group in sorted(wrong, key=str)]
    hit = {group for row in _rows(lake, "gold/coordinator_outage", cluster) for group in row["groups"]}
    if hit != truth.outage:
        found.append(
            f"{cluster}: groups without a coordinator: {sorted(hit)}, and not {sorted(truth.outage)}"
        )
    last: dict[tuple[str, str, int], int | None] = {}
    for row in sorted(_rows(lake, "silver/commit_timeline", cluster), key=lambda row: row["log_offset"]):
        last[row["group"], row["topic"], row["partition"]] = row["offset"]
    known = {position: offset for position, offset in last.items() if offset is not None}
    for position in sorted(set(known) | set(truth.committed)):
        if known.get(position) != truth.committed.get(position):
            mine, theirs = known.get(position), truth.committed.get(position)
            found.append(f"{cluster}: the last commit of {position} is {mine}, and not {theirs}")
    return found


def _rows(lake: Path, table: str, cluster: str) -> list[dict[str, Any]]:
    dataset = DeltaTable(str(lake / table)).to_pyarrow_dataset()
    rows: list[dict[str, Any]] = dataset.to_table(filter=pc.field("cluster") == cluster).to_pylist()
    return rows


def _run(evidence: Path, lake: Path) -> dict[str, object]:
    """What is measured, as a process of its own."""
    from kelpie.pipeline.lake import Lake  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.run import run as run_pipeline  # noqa: PLC0415
    from kelpie.pipeline.session import open_session  # noqa: PLC0415

    spark = open_session(brief=True)
    seconds = {
        folder.name: run_pipeline(spark, Lake(lake), [folder], cluster=folder.name).seconds
        for folder in sorted(evidence.iterdir())
    }
    spark.stop()
    return seconds


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]), Path(sys.argv[2]))))
