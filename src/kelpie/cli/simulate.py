"""kelpie simulate: machines on a virtual clock, in many seeded runs; one file per subject."""

import argparse

from kelpie.cli.simulate_attribution import add_attribution
from kelpie.cli.simulate_zookeeper_rebalance import add_zookeeper_rebalance


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "simulate",
        description="Runs Kelpie's machines on a virtual clock, under faults that come from seeds.",
    )
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=True)
    add_attribution(subjects)
    add_zookeeper_rebalance(subjects)
