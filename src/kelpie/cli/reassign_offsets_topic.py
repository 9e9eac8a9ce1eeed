"""kelpie reassign-offsets-topic: replicas enough for the groups to survive the next dead broker."""

import argparse
from pathlib import Path

from kelpie.cli.repairing import add_repair_options, export, run_repair
from kelpie.client.nodes import Nodes
from kelpie.repair.applying import Repair
from kelpie.repair.reassign import ReassignmentOptions, cancel, reassign
from kelpie.repair.reassignment_plan import COMMAND


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        COMMAND,
        help="give __consumer_offsets replicas enough to survive the loss of a broker",
        description="Plans which replicas of __consumer_offsets to add or move so that every partition "
        "survives the loss of a broker, in several racks where there are some, with leaders kept. Prints "
        "the plan, and the JSON that kafka-reassign-partitions takes; --apply does it.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument(
        "--replication",
        type=int,
        metavar="N",
        help="replicas of each partition; 3, or as many as there are brokers, and not fewer than now",
    )
    parser.add_argument(
        "--brokers", type=_numbers, default=(), metavar="1,2,…", help="only these may hold replicas"
    )
    parser.add_argument("--from-file", metavar="JSON", help="just this assignment, as a file has it")
    parser.add_argument("--export", metavar="FILE", help="write the JSON to a file")
    parser.add_argument("--cancel", action="store_true", help="cancel the moves that are under way")
    parser.add_argument(
        "--wait",
        type=float,
        default=300.0,
        metavar="S",
        help="seconds to watch the copying; %(default)g if left out",
    )
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[/PATH]",
        help="the cluster's ZooKeeper, through which Kafka before 2.4 moves replicas",
    )
    add_repair_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    options = ReassignmentOptions(
        arguments.replication,
        arguments.brokers,
        Path(arguments.from_file) if arguments.from_file else None,
        arguments.wait,
    )

    async def make(nodes: Nodes) -> Repair:
        if arguments.cancel:
            return await cancel(nodes)
        repair = await reassign(nodes, options, arguments.zookeeper)
        if arguments.export:
            for document in repair.plan.documents:
                export(arguments.export, document.text)
        return repair

    return run_repair(arguments, make)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of brokers; write 1,2,3") from None
