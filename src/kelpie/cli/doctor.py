"""kelpie doctor: which groups do not consume, why, whom it hits, and what to do now."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable
from functools import partial

from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import add_connection_options
from kelpie.cli.examining import (
    add_examination_options,
    examination_from,
    is_online,
    pasteable,
    selection_of,
    severity,
    store_for,
)
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json, print_json_line
from kelpie.cli.notify_options import add_notify_options, notifier_from
from kelpie.cli.place_options import place
from kelpie.cli.process_end import leave_to_the_kernel
from kelpie.cli.progress import progress
from kelpie.cli.rule_codes import rule_code
from kelpie.cli.terminal import folded, has_colour, terminal_width
from kelpie.client.garbage import few_collections
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.doctor.rendering import json as as_json
from kelpie.doctor.report import is_judged, verdict
from kelpie.examination import Examination, changes
from kelpie.examination.webhook import Notifier
from kelpie.model.quoting import harmless
from kelpie.model.selection import Selection
from kelpie.model.words import moment

_STATUS = {
    None: ExitStatus.OK,
    Severity.NOTICE: ExitStatus.OK,
    Severity.WARNING: ExitStatus.NO,
    Severity.CRITICAL: ExitStatus.CRITICAL,
}
_WATCH_S = 10.0
_EXAMPLES = """
    kelpie doctor -b kafka-1:9092
        all groups of a cluster
    kelpie doctor -b kafka-1:9092 billing 'orders-*' --full
        some groups, with all evidence
    kelpie doctor -b kafka-1:9092 --watch 30
        every 30 s, and what has changed
    kelpie doctor -b kafka-1:9092 --watch --notify https://hooks.example/kafka --notify-headers secret
        the same, and sends what changes to a webhook
    kelpie doctor --evidence incident/ broker-2.log.gz
        files alone: logs, outputs of Kafka's tools, disks
    kelpie doctor --tables tables/ --json
        what the pipeline found, for programs
"""
_STATUSES = {
    ExitStatus.OK: "nothing is wrong, or notices only",
    ExitStatus.NO: "a warning",
    ExitStatus.CRITICAL: "something critical",
    ExitStatus.NOT_KNOWN: "not all is known: neither a broker nor ZooKeeper answered, no file could "
    "be read, or a group could not be judged",
}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "doctor",
        description="Looks at a cluster, also at one that is half dead, or at files of an incident, and "
        "tells which groups do not consume, why, whom it hits, and what to do. It changes nothing.",
    )
    parser.set_defaults(run=_run)
    describe(parser, examples=_EXAMPLES, statuses=_STATUSES)
    add_examination_options(parser)
    option(
        parser,
        "--tables DIR",
        "tables that kelpie pipeline made: tells what was found there, and looks at nothing else",
        type=place,
    )
    option(parser, "--cluster NAME", "of these tables, if they hold more than one cluster")
    shown = parser.add_mutually_exclusive_group()
    option(shown, "--full", "all evidence, all groups, all commands; one screen if left out")
    add_json_option(parser, "doctor", among=shown)
    option(
        parser,
        "--watch SECONDS",
        f"look again and again, and tell what changes; every {_WATCH_S:g} s if not said otherwise",
        nargs="?",
        type=partial(seconds, most=86_400),
        const=_WATCH_S,
    )
    add_notify_options(parser)
    option(parser, "--code KLP…", "tell only findings of this code", action="append", default=[])
    option(
        parser,
        "--severity WORD",
        "tell only findings of at least this severity: notice, warning or critical",
        type=severity,
        default=Severity.NOTICE,
    )
    add_connection_options(parser, instead=("evidence", "tables", "zookeeper"))


def _run(arguments: argparse.Namespace) -> int:
    with few_collections():
        return _examine(arguments)


def _examine(arguments: argparse.Namespace) -> int:
    selection = selection_of(arguments)
    notifier = notifier_from(arguments)
    choice = partial(Diagnosis.only, codes=_codes(arguments.code), at_least=arguments.severity)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments.tables is not None:
        with progress("doctor", "reading tables"):
            diagnosis = choice(_of_tables(arguments, selection))
        _print(arguments, diagnosis)
        return _status(diagnosis)
    with store_for(arguments) as store:
        if arguments.watch is not None and not is_online(arguments) and arguments.zookeeper is None:
            raise CommandError("--watch needs a cluster: files do not change.")
        examination = examination_from(arguments, selection, store)
        if arguments.watch is not None:
            return asyncio.run(_watch(arguments, examination.repeated(), choice, notifier))
        with progress("doctor", "examining"):
            diagnosis, saw_anything, cases = asyncio.run(examination.examine())
    leave_to_the_kernel(diagnosis, cases)
    diagnosis = pasteable(choice(diagnosis), arguments, examination)
    _print(arguments, diagnosis)
    return _status(diagnosis) if saw_anything else ExitStatus.NOT_KNOWN


def _status(diagnosis: Diagnosis) -> int:
    """No finding means 0 only if every group was judged."""
    return _STATUS[diagnosis.worst] or (ExitStatus.OK if is_judged(diagnosis) else ExitStatus.NOT_KNOWN)


def _of_tables(arguments: argparse.Namespace, selection: Selection) -> Diagnosis:
    others = (arguments.bootstrap_server, arguments.zookeeper, arguments.evidence or None, arguments.watch)
    if any(other is not None for other in others):
        raise CommandError("--tables goes without -b, --zookeeper, --evidence and --watch.")
    try:
        from kelpie.pipeline.results import NoTables, read_diagnosis  # noqa: PLC0415 - only tables need it.
    except ImportError as error:
        raise CommandError(
            f"Tables need Spark and Delta: pip install 'kelpie-kafka[pipeline]'. ({error})"
        ) from None
    try:
        return read_diagnosis(arguments.tables, arguments.cluster, selection)
    except NoTables as error:
        raise CommandError(str(error)) from None


def _print(arguments: argparse.Namespace, diagnosis: Diagnosis) -> None:
    if arguments.json:
        print_json(as_json.as_data(diagnosis))
    else:
        from kelpie.doctor.rendering import terminal  # noqa: PLC0415 - not for JSON.

        width = terminal_width() or terminal.WIDTH
        print(terminal.render(diagnosis, colour=has_colour(), width=width, is_full=arguments.full), end="")


async def _watch(
    arguments: argparse.Namespace,
    examination: Examination,
    choice: Callable[[Diagnosis], Diagnosis],
    notifier: Notifier | None,
) -> int:
    """Until Ctrl-C: prints the first diagnosis in full, then a line for each and what has changed."""
    before: Diagnosis | None = None
    status: int = ExitStatus.NOT_KNOWN
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            with progress("doctor", "examining"):
                diagnosis, saw_anything, _ = await examination.examine()
            diagnosis = pasteable(choice(diagnosis), arguments, examination)
            status = _status(diagnosis) if saw_anything else ExitStatus.NOT_KNOWN
            if arguments.json:
                print_json_line(as_json.as_data(diagnosis))
            elif before is None:
                _print(arguments, diagnosis)
            else:
                print_changes(before, diagnosis)
            sys.stdout.flush()
            if notifier is not None and saw_anything:
                notifier.hear(diagnosis)
            before = diagnosis
            await asyncio.sleep(arguments.watch)
    return status


def print_changes(before: Diagnosis, diagnosis: Diagnosis) -> None:
    """The verdict in a line, and what has come and gone."""

    def tell(label: str, text: str) -> None:
        print(folded(harmless(text), label, sys.stdout))

    tell(f"{moment(diagnosis.cluster.now)}  ", verdict(diagnosis))
    new, gone = changes(before, diagnosis)
    for finding in new:
        tell("  new   ", f"{finding.code} {finding.severity.name}: {finding.summary}")
    for finding in gone:
        tell("  gone  ", f"{finding.code}: {finding.summary}")


def _codes(given: list[str]) -> set[str]:
    return {rule_code(code.strip()) for text in given for code in text.split(",")}
