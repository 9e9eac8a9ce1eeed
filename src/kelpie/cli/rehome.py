"""kelpie rehome: move a stricken group to a name on a healthy coordinator, without losing its place."""

import argparse

from kelpie.api.repair_requests import rehome
from kelpie.cli.command import describe, option
from kelpie.cli.repairing import add_repair_options, run_repair, tell


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "rehome",
        description="A group lives on the partition of __consumer_offsets that its name hashes to. When that "
        "is lost, this finds a name on a healthy one and commits the group's offsets there, from wherever "
        "they can still be had. Prints the plan; --apply does it.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie rehome -b kafka-1:9092 billing
                the plan
            kelpie rehome -b kafka-1:9092 billing --as billing-b --apply
                do it, under this name
            kelpie rehome -b kafka-1:9092 billing --offsets-from history /mnt/broker-2/data
                offsets of copies and of a dead broker's disk
        """,
    )
    parser.add_argument("group", metavar="GROUP", help="the group to move")
    option(parser, "--as NAME", "the name to move to; the first free one of GROUP-2 …", dest="new_name")
    option(
        parser,
        "--offsets-from WHERE",
        "coordinator, history (copies on living brokers), store (earlier surveys), folders with segment "
        "files off brokers' disks, tables of the pipeline, or a CSV file; the first three if left out",
        nargs="+",
        action="extend",
        default=[],
    )
    add_repair_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    request = rehome(arguments.group, arguments.new_name, arguments.offsets_from, tell)
    return run_repair(arguments, request)
