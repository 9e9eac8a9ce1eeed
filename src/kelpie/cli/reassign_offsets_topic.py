"""kelpie reassign-offsets-topic: replicas enough for the groups to survive the next dead broker."""

import argparse
from pathlib import Path

from kelpie.api.repair_requests import reassign_offsets_topic
from kelpie.cli.command import describe, option
from kelpie.cli.repairing import add_repair_options, export, exporting, run_repair, tell
from kelpie.repair.plan import Plan
from kelpie.repair.reassign import ReassignmentOptions
from kelpie.repair.reassignment_plan import COMMAND


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        COMMAND,
        description="Plans which replicas of __consumer_offsets to add or move so that every partition "
        "survives the loss of a broker, in several racks where there are some, with leaders kept. Prints "
        "the plan, and the JSON that kafka-reassign-partitions takes; --apply does it.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie reassign-offsets-topic -b kafka-1:9092
                the plan: three replicas of each partition
            kelpie reassign-offsets-topic -b kafka-1:9092 --throttle 10000000 --apply
                do it, at 10 MB a second at most
            kelpie reassign-offsets-topic -b kafka-1:9092 --cancel --apply
                cancel the moves that are under way
        """,
    )
    option(
        parser,
        "--replication N",
        "replicas of each partition; 3, or as many as there are brokers, and not fewer than now",
        type=int,
    )
    option(parser, "--brokers 1,2,…", "only these may hold replicas", type=_numbers, default=())
    option(parser, "--from-file JSON", "just this assignment, as a file has it")
    option(parser, "--export FILE", "write the JSON to a file")
    option(
        parser,
        "--throttle BYTES_PER_S",
        "each broker copies so many bytes a second at most; the limit is taken back at the end",
        type=_rate,
        default=0,
    )
    option(parser, "--cancel", "cancel the moves that are under way")
    option(
        parser, "--wait S", "seconds to watch the copying; %(default)g if left out", type=float, default=300.0
    )
    option(
        parser,
        "--zookeeper HOST:PORT[/PATH]",
        "the cluster's ZooKeeper, through which Kafka before 2.4 moves replicas",
    )
    add_repair_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    options = ReassignmentOptions(
        arguments.replication,
        arguments.brokers,
        Path(arguments.from_file) if arguments.from_file else None,
        arguments.wait,
        throttle=arguments.throttle,
    )

    def write(plan: Plan) -> None:
        for document in plan.documents:
            export(arguments.export, document.text)

    request = reassign_offsets_topic(options, arguments.zookeeper, cancel=arguments.cancel, tell=tell)
    return run_repair(arguments, exporting(request, write) if arguments.export else request)


def _rate(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 2**62:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes a second")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of brokers; write 1,2,3") from None
