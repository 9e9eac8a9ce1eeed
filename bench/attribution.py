"""Whose fetch is this: the check of the mapping tree."""

from bench import attribution_mappings
from bench.measure import Report


def run() -> Report:
    rows, ratios = attribution_mappings.measure()
    return Report(
        title="Attribution",
        about=f"The mappings of {attribution_mappings.MEMBERS:,} members compared with the tree on a real "
        f"ZooKeeper 3.9, median of {attribution_mappings.ROUNDS}, connecting included. Kelpie also finds "
        "wrong, leaked and ambiguous mappings; the others find missing ones only.",
        header=["mapping check", "s", f"times as fast as {attribution_mappings.PEER}"],
        rows=rows,
        ratios=ratios,
    )
