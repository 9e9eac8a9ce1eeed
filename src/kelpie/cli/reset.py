"""kelpie reset: set the committed offsets of a group, with a plan first and a way back."""

import argparse
from pathlib import Path

from kelpie.api.repair_requests import reset, reset_to_last_known
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.repairing import add_repair_options, export, exporting, run_repair, tell
from kelpie.repair import offsets_file
from kelpie.repair.offset_sources import claims_in
from kelpie.repair.plan import CannotRepair
from kelpie.repair.reset import planned
from kelpie.repair.reset_targets import (
    ResetTarget,
    ShiftBy,
    ToEarliest,
    ToGiven,
    ToLatest,
    ToTime,
    parse_time,
)
from kelpie.repair.undertaking import RepairRequest


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "reset",
        description="Sets the committed offsets of a group without members. What was committed before is "
        "saved in a file from which it can be put back. Prints the plan; --apply does it.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie reset -b kafka-1:9092 billing --to-datetime 2026-11-16T02:18:03
                the plan, for the time before the incident
            kelpie reset -b kafka-1:9092 billing --to-last-known /mnt/broker-2/data --apply
                the newest commit that anything still holds
            kelpie reset -b kafka-1:9092 billing --topic orders:3 --shift-by 1 --apply
                skip one record of orders-3
        """,
    )
    parser.add_argument("group", metavar="GROUP")
    targets = parser.add_argument_group("where to").add_mutually_exclusive_group(required=True)
    option(
        targets,
        "--to-last-known DIR",
        "the newest commit that the offsets topic, earlier surveys, these disks or tables still hold",
        nargs="*",
    )
    option(targets, "--to-datetime T", "2026-11-16T02:18:03, in UTC unless it has a zone")
    option(targets, "--to-earliest", "the beginning of the log")
    option(targets, "--to-latest", "the end of the log")
    option(targets, "--shift-by N", "N records on; back if it is negative", type=int)
    option(targets, "--from-file CSV", "rows topic,partition,offset as kafka-consumer-groups exports them")
    option(
        parser,
        "--topic T[:0,1]",
        "only this topic, or these partitions of it; all that the group has committed if left out",
        action="append",
        default=[],
    )
    option(parser, "--export FILE", "write the new offsets to a file, as kafka-consumer-groups does")
    add_repair_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    request = _request(arguments)
    if arguments.export:
        request = exporting(request, lambda plan: export(arguments.export, offsets_file.write(planned(plan))))
    return run_repair(arguments, request)


def _request(arguments: argparse.Namespace) -> RepairRequest:
    group, topics = arguments.group, arguments.topic
    if arguments.to_last_known is not None:
        return reset_to_last_known(group, list(map(Path, arguments.to_last_known)), topics, tell)
    try:
        return reset(group, _target(arguments), topics)
    except CannotRepair as error:
        raise CommandError(str(error), ExitStatus.NO) from None


def _target(arguments: argparse.Namespace) -> ResetTarget:
    if arguments.to_datetime is not None:
        return ToTime(parse_time(arguments.to_datetime))
    if arguments.shift_by is not None:
        return ShiftBy(arguments.shift_by)
    if arguments.from_file is not None:
        file = Path(arguments.from_file)
        return ToGiven(claims_in(file, arguments.group), f"to what {file} says")
    return ToEarliest() if arguments.to_earliest else ToLatest()
