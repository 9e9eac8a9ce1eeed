"""Whose fetch is this: the check of the mapping tree, and the repair of a week of scrapes.

The week has 27 million samples. ATTRIBUTION="--partitions 65" makes it smaller:

    make bench ONLY=attribution ATTRIBUTION="--partitions 65"
"""

import argparse
import os

from bench import attribution_mappings, attribution_week
from bench.measure import Report


def run() -> Report:
    parser = argparse.ArgumentParser(prog="ATTRIBUTION")
    parser.add_argument("--partitions", type=int, default=attribution_week.PARTITIONS)
    chosen = parser.parse_args(os.environ.get("ATTRIBUTION", "").split())
    rows, ratios = attribution_week.measure(chosen.partitions)
    checks, more = attribution_mappings.measure()
    head = ["mapping check", "members", "s", "", "", f"times as fast as {attribution_mappings.PEER}"]
    members = f"{attribution_mappings.MEMBERS:,}"
    rows += [head, *([what, members, took, "", "", times] for what, took, times in checks)]
    return Report(
        title="Attribution",
        about="A synthetic week of scrapes whose truth is known: CPU and memory are those of all processes, "
        "from start to end. The mappings of members are compared with the tree on a real ZooKeeper 3.9, "
        f"median of {attribution_mappings.ROUNDS}, connecting included; Kelpie also finds wrong, leaked and "
        "ambiguous mappings, the others find missing ones only.",
        header=["", "samples", "CPU s", "million per CPU s", "peak memory, MiB", "decidable right, wrong"],
        rows=rows,
        ratios=[*ratios, *more],
    )
