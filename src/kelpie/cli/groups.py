"""kelpie groups: all groups at a glance, healthy ones too; or one of them, by member and partition.

`kelpie doctor` judges, this shows.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence

from kelpie.cli.command import describe, option
from kelpie.cli.connecting import add_connection_options
from kelpie.cli.examining import (
    add_examination_options,
    examination_from,
    selection_of,
    severity,
    store_for,
)
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.progress import progress
from kelpie.cli.terminal import folded, terminal_width, text_width
from kelpie.cli.text_table import fitting
from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.overview import (
    ORDERS,
    GroupOverview,
    idle_members,
    overview,
    partitions_of,
)
from kelpie.doctor.report import reasons
from kelpie.doctor.standings import PartitionOverview
from kelpie.documents.groups import groups_document
from kelpie.model.cells import fill
from kelpie.model.quoting import harmless
from kelpie.model.selection import Selection
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, first_of, listed

_HEAD = (
    "GROUP",
    "TYPE",
    "STATE",
    "#MEMBERS",
    "COORDINATOR",
    "OFFSETS-PARTITION",
    "LAG",
    "LAG-TIME",
    "LAG-PER-MIN",
    "LAST-COMMIT",
    "WORST",
)
_DISPENSABLE = ("OFFSETS-PARTITION", "COORDINATOR", "TYPE", "LAST-COMMIT", "#MEMBERS", "LAG-PER-MIN")
_PARTITION_HEAD = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
    "LAG-TIME",
    "LAST-COMMIT",
)
"""As Kafka's own tool calls them, and two more."""
_DISPENSABLE_OF_PARTITIONS = ("GROUP", "LAST-COMMIT", "CLIENT-ID", "HOST", "LAG-TIME", "LOG-END-OFFSET")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "groups",
        description="Shows all groups, healthy ones too, a line each. With the name of a group: its members "
        "and partitions. It changes nothing. kelpie doctor says what is wrong, and what to do.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie groups -b kafka-1:9092
                all groups, a line each, the worst first
            kelpie groups -b kafka-1:9092 --only-with-lag --sort lag
                those that have records left to read
            kelpie groups -b kafka-1:9092 billing
                one group, by member and partition
        """,
        statuses={
            ExitStatus.OK: "the groups are shown",
            ExitStatus.NOT_KNOWN: "nothing answered, or a group that was named is not known",
        },
    )
    add_examination_options(parser)
    option(parser, "--only-with-lag", "only groups with records left to read")
    option(
        parser,
        "--severity WORD",
        "only groups with a finding of at least this severity: notice, warning or critical",
        type=severity,
    )
    option(
        parser,
        "--sort COLUMN",
        f"{listed(list(ORDERS), 'or')}; worst if left out",
        choices=list(ORDERS),
        default="worst",
    )
    add_json_option(parser, "groups")
    add_connection_options(parser, instead=("evidence", "zookeeper"))


_MOST_NOTES = 10
_MOST_NAMES = 3


def _run(arguments: argparse.Namespace) -> int:
    selection = selection_of(arguments)
    with store_for(arguments) as store:
        examination = examination_from(arguments, selection, store)
        with progress("groups", "examining"):
            examined = asyncio.run(examination.examine())
    diagnosis, saw_anything, cases = examined
    known = [case for case in cases if case.group not in diagnosis.unheard_of]
    rows = _chosen(overview(known, diagnosis.findings), arguments)
    in_full = {case.group: case for case in known} if _names_groups(selection, known) else None
    if arguments.json:
        print_json(groups_document(diagnosis, rows, in_full))
    else:
        _print_text(diagnosis, rows, in_full)
    _print_what_is_missing(diagnosis, saw_anything)
    return ExitStatus.OK if saw_anything and not diagnosis.unheard_of else ExitStatus.NOT_KNOWN


def _chosen(rows: Iterable[GroupOverview], arguments: argparse.Namespace) -> list[GroupOverview]:
    chosen = [
        row
        for row in rows
        if (not arguments.only_with_lag or row.lag)
        and (
            arguments.severity is None or (row.worst is not None and row.worst.severity >= arguments.severity)
        )
    ]
    return sorted(chosen, key=ORDERS[arguments.sort])


def _names_groups(selection: Selection, cases: Sequence[Case]) -> bool:
    """Whether groups were given by name, and not by pattern: then they are shown in full."""
    known = {case.group_id or case.group for case in cases}
    return selection.words is not None and all(word in known for word in selection.words)


def _print_text(
    diagnosis: Diagnosis, rows: Sequence[GroupOverview], in_full: Mapping[str, Case] | None
) -> None:
    if in_full is not None:
        print("\n\n".join(_in_full(in_full[row.group], row) for row in rows))
    elif rows:
        now = diagnosis.cluster.now
        print(_table(_HEAD, [_cells(row, now) for row in rows], _DISPENSABLE))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], dispensable: Sequence[str]) -> str:
    table, left_out = fitting(head, rows, dispensable, terminal_width())
    note = f"(Too narrow for {listed(left_out)}: a wider terminal, a file or --json has all.)"
    return f"{table}\n{fill(note, text_width())}" if left_out else table


def _cells(row: GroupOverview, now: Instant) -> tuple[str, ...]:
    worst = row.worst
    return (
        harmless(row.group),
        row.kind or "-",
        row.state or "-",
        _number(row.members),
        _number(row.coordinator),
        _number(row.offsets_partition),
        ("" if row.lag_is_whole or row.lag is None else ">=") + _number(row.lag),
        _age(row.lag_ms, row.may_be_older),
        "-" if row.lag_change is None else f"{row.lag_change:+,.0f}".replace("-0", "+0"),
        _ago(row.last_commit, now),
        f"{worst.severity.word} {worst.code}" if worst is not None else "-",
    )


def _in_full(case: Case, row: GroupOverview) -> str:
    lines = [fill(_headline(case, row), text_width(), "", "  ")]
    if row.worst is not None:
        worst = row.worst
        summary = f"{worst.severity.name} {worst.code} {worst.name}: {harmless(worst.summary)}"
        lines.append(fill(summary, text_width(), "", "  "))
    partitions = [_partition_cells(case, each) for each in partitions_of(case)]
    idle = [
        _member_cells(case, member.member_id, member.host, member.client_id) for member in idle_members(case)
    ]
    if partitions or idle:
        lines.append(_table(_PARTITION_HEAD, [*partitions, *idle], _DISPENSABLE_OF_PARTITIONS))
    else:
        lines.append("It has committed nothing, and is assigned nothing, as far as is known.")
    return "\n".join(lines)


def _headline(case: Case, row: GroupOverview) -> str:
    parts = [row.state or "state not known", row.kind]
    if row.protocol:
        parts.append(f"assignor {row.protocol}")
    if row.members is not None:
        parts.append(counted(row.members, "member"))
    if row.offsets_partition is not None:
        broker = case.cluster.broker_name(row.coordinator) if row.coordinator is not None else "none known"
        parts.append(f"coordinator {broker} (partition {row.offsets_partition} of __consumer_offsets)")
    return f"{harmless(row.group)}: {', '.join(part for part in parts if part)}"


def _partition_cells(case: Case, row: PartitionOverview) -> tuple[str, ...]:
    return (
        harmless(case.group),
        harmless(row.name.topic),
        str(row.name.partition),
        _number(row.offset),
        _number(row.end),
        _number(row.lag),
        harmless(row.member_id) or "-",
        harmless(row.host) or "-",
        harmless(row.client_id) or "-",
        _age(row.lag_ms, row.may_be_older),
        _ago(row.last_commit, case.cluster.now),
    )


def _member_cells(case: Case, member_id: str, host: str, client_id: str) -> tuple[str, ...]:
    """A member without a partition, as Kafka's tool shows it."""
    names = (harmless(text) or "-" for text in (member_id, host, client_id))
    return (harmless(case.group), "-", "-", "-", "-", "-", *names, "-", "-")


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _age(ms: int | None, may_be_older: bool) -> str:
    if ms is None:
        return "-"
    return "0 s" if ms == 0 else (">=" if may_be_older else "") + duration(ms)


def _ago(at: Instant | None, now: Instant) -> str:
    return "-" if at is None else f"{duration(max(0, now - at))} ago"


def _print_what_is_missing(diagnosis: Diagnosis, saw_anything: bool) -> None:
    notes = [f"No broker and no file knows the group {harmless(name)}." for name in diagnosis.unheard_of]
    if not saw_anything:
        notes.append("Nothing answered.")
    unasked = [
        f"{what} {harmless(first_of(names, _MOST_NAMES))}: {harmless(reason)}"
        for what, names, reason in reasons(diagnosis)
        if what not in ("file", "files")
    ]
    notes += [f"Could not be asked: {text}" for text in unasked[:_MOST_NOTES]]
    rest = len(unasked) - _MOST_NOTES
    if rest > 0:
        notes.append(f"And {rest} more; --json lists them.")
    for note in notes:
        print(folded(note, "kelpie groups: "), file=sys.stderr)
