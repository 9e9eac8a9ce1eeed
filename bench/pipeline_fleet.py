"""A fleet's evidence through the whole pipeline: every injected fault found, nothing found that was not.

Each cluster goes in as its folder is, into the same tables. Findings of warning and worse must be exactly
those of the truth, and so must the causes of rebalances and the last commit of every group: none that was
aborted or is still open, each once though every record lies on two disks.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fleet_evidence import Fleet, Truth
from bench.fleet_truth import differences, strangers
from bench.measure import Ratio
from bench.tree import cost, cpu_by_process

LIMIT_S = 1800
_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Measured:
    """What a fleet's evidence cost, all of it as it should be."""

    records: int
    injected: int
    cpu_s: float
    mb: float
    """Of the files of all tables."""
    peak_mib: float


def run(fleet: Fleet) -> tuple[list[list[str]], list[Ratio]]:
    """Rows of the report. Raises SystemExit if anything is not as it should be."""
    found = measure(fleet)
    what = (
        f"{fleet.clusters} clusters of {fleet.groups} groups, {fleet.days * 24:.1f} hours, to findings: all "
        f"{found.injected} that were injected, no other"
    )
    speed = f"{found.records / found.cpu_s / 1e6:.3f}"
    return [[what, f"{found.records:,}", f"{found.cpu_s:.1f}", speed, f"{found.peak_mib:.0f}"]], []


def measure(fleet: Fleet) -> Measured:
    """Raises SystemExit if anything is not as it should be."""
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        evidence, lake = Path(room) / "evidence", Path(room) / "lake"
        truths = fleet.write(evidence)
        _say(_injected(fleet, truths))
        began = time.monotonic()
        found = cost(
            [sys.executable, "-m", "bench.pipeline_fleet", str(evidence), str(lake)], timeout_s=LIMIT_S
        )
        _say(_spent(json.loads(found.output), time.monotonic() - began))
        wrong = [line for name, truth in truths.items() for line in differences(lake, name, truth)]
        wrong += strangers(lake, set(truths))
        size = sum(file.stat().st_size for file in lake.rglob("*.parquet") if "_delta_log" not in file.parts)
    if wrong:
        more = [f"… and {len(wrong) - _MOST_LINES} more"] if len(wrong) > _MOST_LINES else []
        raise SystemExit("\n".join([f"{fleet}: not true:", *wrong[:_MOST_LINES], *more]))
    records = sum(truth.records for truth in truths.values())
    injected = sum(len(truth.findings) for truth in truths.values())
    return Measured(records, injected, found.cpu_s, size / 1e6, found.peak_mib)


def _injected(fleet: Fleet, truths: Mapping[str, Truth]) -> str:
    counted = Counter(code for truth in truths.values() for code, _ in truth.findings)
    told = ", ".join(f"{code} ×{count}" for code, count in sorted(counted.items()))
    return f"{fleet}: {sum(counted.values())} findings to be made: {told}"


def _spent(told: Mapping[str, Mapping[str, Any]], wall_s: float) -> str:
    lines = [f"{wall_s:.0f} s in all; CPU seconds by stage:"]
    for cluster, summary in told.items():
        stages = summary["cpu_s"]
        rows = ", ".join(f"{name} {count:,}" for name, count in summary["tables"].items() if count)
        lines.append(f"{cluster}: {sum(stages.values()):.1f}")
        lines += [f"  {seconds:6.1f}  {name}" for name, seconds in stages.items()]
        lines.append(f"  rows: {rows}")
    return "\n".join(lines)


def _say(text: str) -> None:
    """It takes long: whoever looks on sees what there is so far."""
    print(text, file=sys.stderr, flush=True)


def _run(evidence: Path, lake: Path) -> dict[str, object]:
    """What is measured, as a process of its own."""
    from kelpie.api.tables import is_small  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.run import run as run_pipeline  # noqa: PLC0415
    from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415
    from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415

    spark = open_session(brief=is_small([evidence]))
    told: dict[str, object] = {}
    for folder in sorted(evidence.iterdir()):
        clock = _Clock()
        summary = run_pipeline(spark, Lake(lake), [folder], cluster=folder.name, announce=clock.stage)
        clock.stage("")
        told[folder.name] = {"cpu_s": clock.spent, "tables": summary.tables}
    spark.stop()
    return told


class _Clock:
    """CPU seconds of all processes, from one stage to the next, also of those that ended meanwhile."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._known = cpu_by_process()
        self._stage, self._since = "", sum(self._known.values())

    def stage(self, name: str) -> None:
        self._known |= cpu_by_process()
        now = sum(self._known.values())
        if self._stage:
            self.spent[self._stage] = self.spent.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = name, now


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]), Path(sys.argv[2]))))
