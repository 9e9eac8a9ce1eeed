"""kelpie elect: elect leaders, cleanly or, as a last resort, not."""

import argparse
from pathlib import Path

from kelpie.api.repair_requests import elect
from kelpie.cli.command import describe, option
from kelpie.cli.repairing import add_repair_options, run_repair
from kelpie.model.names import TopicPartition


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "elect",
        description="Elects the preferred leader of partitions, or, with --unclean, any replica that lives, "
        "for partitions that have no leader. Prints the plan, with what would be lost as far as that can be "
        "known; --apply does it.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie elect -b kafka-1:9092 orders-3 orders-4
                the plan: their preferred leaders
            kelpie elect -b kafka-1:9092 __consumer_offsets-45 --unclean --evidence /mnt/broker-2/data
                what an unclean election would lose
        """,
    )
    parser.add_argument(
        "partitions", nargs="+", type=_partition, metavar="PARTITION", help="as Kafka writes it: orders-3"
    )
    option(parser, "--unclean", "let a replica lead that was not in sync; loses what it lacks")
    option(
        parser,
        "--evidence DIR",
        "disks of the brokers that are down, to tell what would be lost",
        nargs="+",
        default=[],
    )
    add_repair_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    files = list(map(Path, arguments.evidence))
    return run_repair(arguments, elect(arguments.partitions, files, unclean=arguments.unclean))


def _partition(text: str) -> TopicPartition:
    partition = TopicPartition.parse(text)
    if partition is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no partition; write TOPIC-NUMBER, as orders-3")
    return partition
