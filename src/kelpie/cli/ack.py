"""kelpie ack: what people know about no longer sets the exit status of `kelpie doctor`, for a while."""

import argparse
import getpass
import time
from collections.abc import Sequence
from pathlib import Path

from kelpie.acknowledgements import SEVERITIES, Acknowledgements, UnreadableAcknowledgements, parsed, written
from kelpie.cli.amounts import duration
from kelpie.cli.command import CommandError, describe, option, reads
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.environment import STATE
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option
from kelpie.cli.rule_codes import rule_code
from kelpie.cli.terminal import terminal_width
from kelpie.cli.text_table import text_table
from kelpie.doctor.finding import Severity, names_group
from kelpie.model.quoting import harmless
from kelpie.model.time import Instant, time_from
from kelpie.model.words import moment
from kelpie.observations.acknowledgement import Acknowledgement
from kelpie.store import Store


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
            text = _change(arguments, kept, now)
        print(written(kept.all()) if arguments.json else f"{text}\n", end="")
    except UnreadableAcknowledgements as error:
        raise CommandError(f"{error}.") from None
    return ExitStatus.OK


def _change(arguments: argparse.Namespace, kept: Acknowledgements, now: Instant) -> str:
    """Adds one, or removes one; what was done, in words."""
    store = Store(arguments.store)
    group, code = _named(arguments.what)
    cluster = _cluster(arguments, store)
    if arguments.remove:
        return _remove(kept, cluster, group, code, now)
    row = _acknowledgement(arguments, store.found(cluster), group, code, now)
    kept.add({cluster: [row]}, now)
    return f"{_whom(row)} is acknowledged until {moment(row.until)}, up to {row.severity}."


def _acknowledgement(
    arguments: argparse.Namespace,
    found: dict[tuple[str | None, str], str],
    group: str | None,
    code: str,
    now: Instant,
) -> Acknowledgement:
    if not arguments.until or not (arguments.why or "").strip():
        raise CommandError("Say until when, and why: --until 3d --why 'moves to the new cluster'.")
    known = [
        Severity.of(word)
        for (of, found_code), word in found.items()
        if found_code == code and names_group(group, of)
    ]
    if not known and arguments.severity is None:
        raise CommandError(
            f"The last look found no {code} {'for ' + group if group is not None else 'of the cluster'}. To "
            "acknowledge it beforehand, say how bad it may get: --severity warning."
        )
    severity = arguments.severity or max(known).word
    by = arguments.by or _account()
    until = _until(arguments.until, now)
    return Acknowledgement(group, code, severity, until, by, arguments.why.strip(), now)


def _named(words: Sequence[str]) -> tuple[str | None, str]:
    if len(words) > 2:
        raise CommandError("Give one group, or a pattern in quotes, and one code.")
    group, code = words if len(words) == 2 else (None, words[0])
    if group == "":
        raise CommandError("An empty name is no name for a group.")
    return group, rule_code(code)


def _cluster(arguments: argparse.Namespace, store: Store) -> str:
    """Its name in the store."""
    if arguments.cluster:
        return str(arguments.cluster)
    known = store.clusters()
    if arguments.bootstrap_server is not None or arguments.command_config is not None:
        addresses = [str(address) for address in settings_from(arguments).bootstrap]
        name = store.name_of(addresses)
        if name not in known:
            raise CommandError(f"No look at {name} is remembered. Run kelpie doctor -b {name} first.")
        return name
    if len(known) != 1:
        raise CommandError(
            "Which cluster? Say -b HOST:PORT, or --cluster with one of these: "
            f"{', '.join(known) or 'none is known yet'}."
        )
    return known[0]


def _until(text: str, now: Instant) -> Instant:
    try:
        until = time_from(text)
    except ValueError:
        try:
            return now + round(duration(text) * 1000)
        except argparse.ArgumentTypeError:
            raise CommandError(f"{text!r} is no time: write 2026-12-01, 2026-12-01T08:00 or 3d.") from None
    if until <= now:
        raise CommandError(f"{moment(until)} is over.")
    return until


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def _remove(kept: Acknowledgements, cluster: str, group: str | None, code: str, now: Instant) -> str:
    if kept.remove(cluster, group, code, now):
        return harmless(f"{code} {group or 'of the cluster'} is no longer acknowledged.")
    raise CommandError(
        f"{code} {group or 'of the cluster'} is not acknowledged; kelpie ack --list.", ExitStatus.NO
    )


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
