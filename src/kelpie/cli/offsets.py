"""kelpie offsets recover: what every group had committed last, as far as any disk, tool or table knows."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence

from kelpie.api.offsets import read_witnesses
from kelpie.api.places import folders_of
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.place_options import place
from kelpie.cli.progress import progress
from kelpie.cli.terminal import folded, terminal_width
from kelpie.cli.text_table import text_table
from kelpie.documents.offsets import recovered_offset
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.names import TopicPartition
from kelpie.model.quoting import harmless
from kelpie.model.time import Instant, iso_time
from kelpie.model.words import counted, first_of
from kelpie.repair import offsets_file
from kelpie.repair.claims import SettledOffset
from kelpie.repair.plan import CannotRepair
from kelpie.repair.recovery import RemovedOffset, recover, removed
from kelpie.repair.reset_targets import parse_time

_SHOWN = 5
_HEAD = ("GROUP", "TOPIC", "PARTITION", "OFFSET", "COMMITTED", "CERTAINTY", "SOURCE")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "offsets",
        description="Works with the committed offsets that files and tables still know.",
    )
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    recovering = commands.add_parser(
        "recover",
        help="the last committed offsets of every group, with where each came from and how sure that is",
        description="Reads segments of the offsets topic off disks of brokers, outputs of Kafka's tools, and "
        "tables of kelpie pipeline, and tells what every group had committed last. It changes nothing; "
        "kelpie reset GROUP --from-file CSV, or Kafka's own tool, puts offsets back.",
    )
    recovering.set_defaults(run=_run)
    describe(
        recovering,
        examples="""
            kelpie offsets recover /mnt/broker-1/data /mnt/broker-2/data
                all groups, from disks of two brokers
            kelpie offsets recover tables/ --group billing --at 2026-11-16T02:18:03
                as it was then, from tables
            kelpie offsets recover tables/ --group billing --csv
                for kafka-consumer-groups --reset-offsets --from-file
        """,
        statuses={
            ExitStatus.OK: "offsets are known",
            ExitStatus.NO: "none are",
        },
    )
    recovering.add_argument(
        "folders", nargs="+", type=place, metavar="DIR", help="disks of brokers, evidence, archives, tables"
    )
    option(recovering, "--group GROUP", "only this one; may be given several times", action="append")
    option(recovering, "--at TIME", "as it was then: 2026-11-16T02:18:03, in UTC unless it has a zone")
    option(recovering, "--cluster NAME", "of tables that hold more than one")
    form = recovering.add_mutually_exclusive_group()
    add_json_option(recovering, "offsets-recover", among=form)
    option(
        form,
        "--csv",
        "print what kafka-consumer-groups --reset-offsets --from-file reads; for one group without its "
        "name in front",
    )


def _run(arguments: argparse.Namespace) -> int:
    try:
        at = None if arguments.at is None else parse_time(arguments.at)
    except (CannotRepair, ValueError) as error:
        raise CommandError(str(error)) from None
    try:
        with progress("offsets", "reading files and tables"):
            observations = read_witnesses(folders_of(arguments.folders), arguments.cluster)
    except KelpieError as error:
        raise CommandError(str(error)) from None
    rows = list(recover(observations, groups=arguments.group, at=at))
    if arguments.json:
        print_json([recovered_offset(*row) for row in rows])
    elif arguments.csv:
        print(_csv(rows, named=arguments.group is None or len(arguments.group) != 1), end="")
    elif rows:
        print(_table(rows))
    gone = list(removed(observations, groups=arguments.group, at=at))
    for line in _removed_lines(gone, named=arguments.group is not None):
        print(folded(line, ""), file=sys.stderr)
    if not rows:
        whose = f" of {', '.join(arguments.group)}" if arguments.group else ""
        raise CommandError(f"No committed offsets{whose} are known there.", ExitStatus.NO)
    return 0


def _removed_lines(gone: Sequence[RemovedOffset], *, named: bool) -> Iterator[str]:
    """Offsets that were removed are no rows: whoever puts rows back must not bring a deleted group back."""
    if not named:
        groups = sorted({row.group for row in gone})
        if groups:
            was, has = ("was", "has") if len(gone) == 1 else ("were", "have")
            yield (
                f"Left out: {counted(len(gone), 'offset')} that {was} deleted or {has} expired, of "
                f"{harmless(first_of(groups, _SHOWN))}. --group GROUP tells when, and what stood before."
            )
        return
    for row in gone:
        when = "at a time that is not known" if row.at is None else f"at {_moment(row.at)}"
        yield (
            f"Group {harmless(row.group)}, {harmless(str(row.before.partition))}: the offset was deleted or "
            f"has expired {when}. Before that it was {row.before.offset}, committed {_moment(row.before.at)}."
        )


def _csv(rows: Iterable[tuple[str, SettledOffset]], *, named: bool) -> str:
    offsets: dict[str, dict[TopicPartition, int]] = {}
    for group, offset in rows:
        offsets.setdefault(group, {})[offset.partition] = offset.offset
    return "".join(
        offsets_file.write(of_group, group if named else None) for group, of_group in offsets.items()
    )


def _table(rows: Iterable[tuple[str, SettledOffset]]) -> str:
    cells = [_HEAD] + [
        (
            group,
            offset.partition.topic,
            str(offset.partition.partition),
            str(offset.offset),
            _moment(offset.claim.at),
            f"{offset.certainty.word} ({offset.why})",
            offset.claim.source,
        )
        for group, offset in rows
    ]
    return text_table(cells, terminal_width())


def _moment(at: Instant | None) -> str:
    return "-" if at is None else iso_time(at)
