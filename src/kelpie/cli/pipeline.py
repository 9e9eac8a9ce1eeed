"""kelpie pipeline: everything that can be observed of consumer groups, as tables."""

import argparse

from kelpie.cli.pipeline_run import add_run
from kelpie.cli.pipeline_stream import add_stream
from kelpie.cli.pipeline_submit import add_submit


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "pipeline",
        description="Reads evidence of any kind and any size with Spark, and keeps it as Delta tables: "
        "commits, generations, rebalances, lag, outages, losses, findings.",
    )
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_run(commands)
    add_stream(commands)
    add_submit(commands)
