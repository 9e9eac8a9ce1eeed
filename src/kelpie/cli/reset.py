"""kelpie reset: set the committed offsets of a group, with a plan first and a way back."""

import argparse
from pathlib import Path

from kelpie.cli.command import CommandError
from kelpie.cli.repairing import add_repair_options, earlier_surveys, run_repair
from kelpie.cli.witnesses import read_witnesses
from kelpie.client.nodes import Nodes
from kelpie.repair import offsets_file
from kelpie.repair.applying import Repair
from kelpie.repair.keeping import keep
from kelpie.repair.plan import CannotRepair
from kelpie.repair.reset import last_known, planned, reset
from kelpie.repair.sources import claims_in
from kelpie.repair.targets import Aim, ShiftBy, ToEarliest, ToGiven, ToLatest, ToTime, parse_time


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "reset",
        help="set the committed offsets of a group that nobody uses",
        description="Sets the committed offsets of a group without members. What was committed before is "
        "saved in a file from which it can be put back. Prints the plan; --apply does it.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument("group", metavar="GROUP")
    aims = parser.add_argument_group("where to").add_mutually_exclusive_group(required=True)
    aims.add_argument(
        "--to-last-known",
        nargs="*",
        metavar="DIR",
        help="the newest commit that the offsets topic, earlier surveys, these disks or tables still hold",
    )
    aims.add_argument("--to-datetime", metavar="T", help="2026-11-16T02:18:03, in UTC unless it has a zone")
    aims.add_argument("--to-earliest", action="store_true", help="the beginning of the log")
    aims.add_argument("--to-latest", action="store_true", help="the end of the log")
    aims.add_argument("--shift-by", type=int, metavar="N", help="N records on; back if it is negative")
    aims.add_argument(
        "--from-file", metavar="CSV", help="rows topic,partition,offset as kafka-consumer-groups exports them"
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="T[:0,1]",
        help="only this topic, or these partitions of it; all that the group has committed if left out",
    )
    parser.add_argument(
        "--export", metavar="FILE", help="write the new offsets to a file, as kafka-consumer-groups does"
    )
    add_repair_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    async def make(nodes: Nodes) -> Repair:
        known = None
        if arguments.to_last_known is not None:
            disks = [_existing(folder) for folder in arguments.to_last_known]
            known = await last_known(
                nodes,
                arguments.group,
                earlier=earlier_surveys(nodes),
                evidence=read_witnesses(disks) if disks else None,
            )
        aim = known.aim if known is not None else _aim(arguments)
        repair = await reset(nodes, arguments.group, aim, arguments.topic, known)
        if arguments.export:
            _export(Path(arguments.export), repair)
        return repair

    return run_repair(arguments, make)


def _aim(arguments: argparse.Namespace) -> Aim:
    if arguments.to_datetime is not None:
        return ToTime(parse_time(arguments.to_datetime))
    if arguments.shift_by is not None:
        return ShiftBy(arguments.shift_by)
    if arguments.from_file is not None:
        file = Path(arguments.from_file)
        return ToGiven(claims_in(file, arguments.group), f"to what {file} says")
    return ToEarliest() if arguments.to_earliest else ToLatest()


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.exists():
        raise CannotRepair(f"There is no file or folder {name}.")
    return path


def _export(file: Path, repair: Repair) -> None:
    try:
        keep(file, offsets_file.write(planned(repair.plan)))
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.", status=1) from None
