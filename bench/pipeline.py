"""The data pipeline: segments and logs to tables, joins with intervals, a fleet's evidence to findings.

`make bench ONLY=pipeline` measures all of it: ten and twenty million records, a log of a gigabyte, a fleet.
What is measured, and how big it is, can be told by arguments of `python -m bench.pipeline`, or in the
environment:

    make bench ONLY=pipeline PIPELINE="--quick"
    make bench ONLY=pipeline PIPELINE="fleet --clusters 3 --groups 300 --partitions 8 --days 0.1 --faults 5"
    make bench ONLY=pipeline PIPELINE="fleet --quick --seed 7"
    make bench ONLY=pipeline PIPELINE="segments --records 50000000"
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from bench import pipeline_fleet, pipeline_join, pipeline_logs, pipeline_segments
from bench.fleet_evidence import Fleet
from bench.measure import Ratio, Report

PARTS = ("segments", "logs", "interval-join", "fleet")
RECORDS, LOG_BYTES, SAMPLES = 20_000_000, 1_000_000_000, 10_000_000
FLEET = Fleet(clusters=2, groups=40, partitions=4, days=0.02, faults=2)
QUICK = 10
"""How much less `--quick` measures."""
QUICK_FLEET = Fleet(2, 20, 2, 0.018, 1)
"""The fleet of `--quick`: every kind of fault once in each cluster."""
COMMITTING, COMMITTED = 1_000, 12
"""Groups, and partitions of each, whose commits are measured as segments."""


def run(arguments: Sequence[str] | None = None) -> Report:
    chosen = _options(os.environ.get("PIPELINE", "").split() if arguments is None else arguments)
    share = QUICK if chosen.quick else 1
    rows: list[list[str]] = []
    ratios: list[Ratio] = []
    for part in PARTS:
        if part not in chosen.parts:
            continue
        if part == "segments":
            more, found = pipeline_segments.run(chosen.records // share, COMMITTING, COMMITTED)
        elif part == "logs":
            more, found = pipeline_logs.run(chosen.log_bytes // share)
        elif part == "interval-join":
            more, found = pipeline_join.run(chosen.samples // share, chosen.samples // share // 10)
        else:
            more, found = pipeline_fleet.run(_fleet(chosen))
        for line in (*map(" | ".join, more), *map(str, found)):
            print(line, file=sys.stderr)  # It takes long: whoever looks on sees what there is so far.
        rows += more
        ratios += found
    return Report(
        title="Pipeline",
        about=(
            f"Segments: {COMMITTING:,} groups that commit {COMMITTED} partitions every five seconds. CPU and "
            "memory are those of all processes of a command, from start to end; of log lines and of the "
            "join, those of a session that is warm. Peers of segments and of log lines read a part of the "
            "same files."
        ),
        header=["", "records", "CPU s", "million per CPU s", "peak memory, MiB"],
        rows=rows,
        ratios=ratios,
    )


def _fleet(chosen: argparse.Namespace) -> Fleet:
    """As told; what was not told is of the default size, or of the quick one."""
    usual = QUICK_FLEET if chosen.quick else FLEET
    names = ("clusters", "groups", "partitions", "days", "faults")
    sizes = {name: getattr(chosen, name) for name in names if getattr(chosen, name) is not None}
    return replace(usual, **sizes, seed=chosen.seed)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description="Measures the pipeline.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=f"of {', '.join(PARTS)}; all if none")
    parser.add_argument("--quick", action="store_true", help=f"a {QUICK}th of all sizes, and a small fleet")
    parser.add_argument("--records", type=int, default=RECORDS, help="commits in segments")
    parser.add_argument("--log-bytes", type=int, default=LOG_BYTES)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="to be joined")
    fleet = parser.add_argument_group("the fleet")
    fleet.add_argument("--clusters", type=int, help=f"{FLEET.clusters} if not told")
    fleet.add_argument("--groups", type=int, help=f"in each cluster; {FLEET.groups}")
    fleet.add_argument("--partitions", type=int, help=f"that each group reads; {FLEET.partitions}")
    fleet.add_argument("--days", type=float, help=f"{FLEET.days}")
    fleet.add_argument("--faults", type=int, help=f"groups hit by each kind, in a cluster; {FLEET.faults}")
    fleet.add_argument("--seed", type=int, default=0, help="which groups are hit, and when")
    chosen = parser.parse_args(arguments)
    chosen.parts = chosen.parts or list(PARTS)
    return chosen


if __name__ == "__main__":
    from bench.__main__ import table

    report = run(sys.argv[1:])
    print(table(report))
    for ratio in report.ratios:
        print(ratio)
