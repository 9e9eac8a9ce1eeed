"""kelpie ack: what people know about no longer sets the exit status of `kelpie doctor`, for a while."""

import argparse
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from kelpie.acknowledgements import SEVERITIES, Acknowledgements, UnreadableAcknowledgements, parsed, written
from kelpie.api.acknowledging import acknowledge, unacknowledge
from kelpie.cli.amounts import duration
from kelpie.cli.command import CommandError, describe, option, reads
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.environment import STATE
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option
from kelpie.cli.rule_codes import rule_code
from kelpie.cli.terminal import terminal_width
from kelpie.cli.text_table import text_table
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.quoting import harmless
from kelpie.model.time import Instant
from kelpie.model.words import moment
from kelpie.observations.acknowledgement import Acknowledgement


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "ack",
        description="Acknowledges a finding of kelpie doctor for a while. It is then told in one line, and "
        "no longer sets the exit status, until the time is over or it gets worse. Without GROUP: a finding "
        "about the cluster as a whole.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie ack billing KLP309 --until 3d --why 'moves to the new cluster'
                for three days
            kelpie ack --list
                what is acknowledged
            kelpie ack billing KLP309 --remove
                take it back
            kelpie ack --json
                all of them, for --import on another machine
        """,
        statuses={
            ExitStatus.OK: "done",
            ExitStatus.NO: "there is nothing to remove",
        },
    )
    parser.add_argument(
        "what", nargs="*", metavar="[GROUP] CODE", help="a group, by name or pattern ('batch-*'), and a code"
    )
    option(parser, "--until WHEN", "a day (2026-12-01), a time (2026-12-01T08:00), or a while (12h, 3d)")
    option(parser, "--why TEXT", "why it needs nobody's attention")
    option(parser, "--by NAME", "who acknowledges; the name of your account if left out")
    option(
        parser,
        "--severity WORD",
        "what is worse than this is told all the same; as found last if left out",
        choices=SEVERITIES,
    )
    actions = parser.add_mutually_exclusive_group()
    option(actions, "--list", "show what is acknowledged; this is what happens without arguments, too")
    option(actions, "--remove", "take this acknowledgement back")
    option(actions, "--import FILE", "add those of a file that --json wrote", type=Path, dest="file")
    add_json_option(parser, "ack", "list what is acknowledged, after a change too, as JSON for --import")
    option(parser, "--cluster NAME", "the cluster, as --list names it; else -b, or the only one known")
    option(parser, "--store DIR", "where they are kept; ~/.local/state/kelpie if left out", type=Path)
    reads(parser, STATE)
    add_connection_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    kept = Acknowledgements(arguments.store)
    now = time.time_ns() // 1_000_000
    try:
        if arguments.file is not None:
            text = _import(kept, arguments.file, now)
        elif arguments.list or not arguments.what:
            text = _table(kept, now)
        else:
            text = _change(arguments, now)
        print(written(kept.all()) if arguments.json else f"{text}\n", end="")
    except UnreadableAcknowledgements as error:
        raise CommandError(f"{error}.") from None
    except KelpieError as error:
        raise CommandError(str(error)) from None
    return ExitStatus.OK


def _change(arguments: argparse.Namespace, now: Instant) -> str:
    """Adds one, or removes one; what was done, in words. Raises CommandError, KelpieError."""
    group, code = _named(arguments.what)
    cluster = _place(arguments)
    if arguments.remove:
        whom = f"{code} {group or 'of the cluster'}"
        if not unacknowledge(code, group, cluster=cluster, store=arguments.store):
            raise CommandError(f"{whom} is not acknowledged; kelpie ack --list.", ExitStatus.NO)
        return harmless(f"{whom} is no longer acknowledged.")
    if not arguments.until or not (arguments.why or "").strip():
        raise CommandError("Say until when, and why: --until 3d --why 'moves to the new cluster'.")
    row = acknowledge(
        code,
        group,
        until=_until(arguments.until, now),
        why=arguments.why,
        by=arguments.by,
        severity=arguments.severity,
        cluster=cluster,
        store=arguments.store,
    )
    return f"{_whom(row)} is acknowledged until {moment(row.until)}, up to {row.severity}."


def _named(words: Sequence[str]) -> tuple[str | None, str]:
    if len(words) > 2:
        raise CommandError("Give one group, or a pattern in quotes, and one code.")
    group, code = words if len(words) == 2 else (None, words[0])
    return group, rule_code(code)


def _place(arguments: argparse.Namespace) -> str | None:
    """The cluster, as the options name it."""
    if arguments.cluster:
        return str(arguments.cluster)
    if arguments.bootstrap_server is None and arguments.command_config is None:
        return None
    return ",".join(str(address) for address in settings_from(arguments).bootstrap)


def _until(text: str, now: Instant) -> datetime | Instant:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        try:
            return now + round(duration(text) * 1000)
        except argparse.ArgumentTypeError:
            raise CommandError(f"{text!r} is no time: write 2026-12-01, 2026-12-01T08:00 or 3d.") from None


def _import(kept: Acknowledgements, file: Path, now: Instant) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from None
    given = parsed(text, str(file))
    kept.add(given, now)
    return f"{sum(map(len, given.values()))} added."


def _table(kept: Acknowledgements, now: Instant) -> str:
    rows = [
        (cluster, _whom(row), row.severity, _when(row, now), row.by, row.why)
        for cluster, of_cluster in sorted(kept.all().items())
        for row in of_cluster
    ]
    if not rows:
        return "Nothing is acknowledged."
    return text_table([("CLUSTER", "WHAT", "UP TO", "UNTIL", "BY", "WHY"), *rows], terminal_width())


def _when(row: Acknowledgement, now: Instant) -> str:
    return moment(row.until) + (", expired" if row.until <= now else "")


def _whom(row: Acknowledgement) -> str:
    return harmless(f"{row.code} {row.group if row.group is not None else '(cluster)'}")
