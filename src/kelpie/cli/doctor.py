"""kelpie doctor: which groups do not consume, why, whom it hits, and what to do now.

Exit status: 0 nothing, or notices; 1 a warning; 2 something critical; 3 there was nothing to look at: no
broker answered, no file could be read; 64 the command was not understood.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from kelpie.cli.command import CommandError
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.examining import Examination
from kelpie.cli.log_options import add_log_options, hints_of
from kelpie.client.history import BYTES_PER_PARTITION
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.rendering import json as as_json
from kelpie.doctor.rendering import terminal
from kelpie.doctor.report import verdict
from kelpie.doctor.rules import rules
from kelpie.evidence import read_evidence
from kelpie.model.quoting import harmless
from kelpie.model.words import moment
from kelpie.store import Store

NOTHING_TO_SEE = 3
MISUNDERSTOOD = 64

_STATUS = {None: 0, Severity.NOTICE: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}
_WATCH_S = 10.0
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="which groups do not consume, why, and what to do now",
        description="Looks at a cluster, also at one that is half dead, or at files of an incident, and "
        "tells which groups do not consume, why, whom it hits, and what to do. It changes nothing.",
        epilog="Exit status: 0 nothing wrong, or notices; 1 a warning; 2 something critical; 3 nothing to "
        "look at: no broker answered, no file could be read; 64 the command was not understood.",
    )
    _mind_status(parser)
    parser.set_defaults(run=_run)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="only these groups; all if left out")
    parser.add_argument(
        "--evidence",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="DIR",
        help="files of an incident: logs, describe outputs, segments, archives of these; with or without -b",
    )
    parser.add_argument(
        "--tables",
        type=Path,
        metavar="DIR",
        help="tables that kelpie pipeline made: tells what was found there, and looks at nothing else",
    )
    parser.add_argument(
        "--cluster", metavar="NAME", help="of these tables, if they hold more than one cluster"
    )
    add_log_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON; docs/findings.schema.json says how")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=_seconds,
        const=_WATCH_S,
        metavar="SECONDS",
        help=f"look again and again, and tell what changes; every {_WATCH_S:g} s if not said otherwise",
    )
    parser.add_argument(
        "--code", action="append", default=[], metavar="KLP…", help="tell only findings of this code"
    )
    parser.add_argument(
        "--history",
        type=_bytes,
        default=BYTES_PER_PARTITION,
        metavar="BYTES",
        help="how much of the end of each partition of __consumer_offsets is read: 2M if left out; or none",
    )
    keeping = parser.add_mutually_exclusive_group()
    keeping.add_argument(
        "--store",
        type=Path,
        metavar="DIR",
        help="where earlier surveys are kept; ~/.local/state/kelpie if left out",
    )
    keeping.add_argument(
        "--no-store", action="store_true", help="remember nothing, and know nothing of before"
    )
    add_connection_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    codes = _codes(arguments.code)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments.tables is not None:
        diagnosis = _only(_of_tables(arguments), codes)
        _print(arguments, diagnosis)
        return _STATUS[diagnosis.worst] if diagnosis.groups else NOTHING_TO_SEE
    with _store(arguments) as store:
        examination = _examination(arguments, store)
        try:
            if arguments.watch is not None:
                return asyncio.run(_watch(arguments, examination, codes))
            diagnosis, looked = asyncio.run(examination.look())
        finally:
            for word in store.words if store is not None else ():
                print(f"kelpie doctor: {word}", file=sys.stderr)
    diagnosis = _only(diagnosis, codes)
    _print(arguments, diagnosis)
    return _STATUS[diagnosis.worst] if looked else NOTHING_TO_SEE


def _of_tables(arguments: argparse.Namespace) -> Diagnosis:
    if arguments.bootstrap_server is not None or arguments.evidence or arguments.watch is not None:
        raise CommandError("--tables goes without -b, --evidence and --watch.", MISUNDERSTOOD)
    try:
        from kelpie.pipeline.results import NoTables, read_diagnosis  # noqa: PLC0415 - who has no tables needs none.
    except ImportError as error:
        raise CommandError(
            f"Tables need Spark and Delta: pip install 'kelpie[pipeline]'. ({error})", MISUNDERSTOOD
        ) from None
    try:
        return read_diagnosis(arguments.tables, arguments.cluster, arguments.groups or None)
    except NoTables as error:
        raise CommandError(str(error), MISUNDERSTOOD) from None


def _examination(arguments: argparse.Namespace, store: Store | None) -> Examination:
    online = arguments.bootstrap_server is not None or arguments.command_config is not None
    if not online and not arguments.evidence:
        raise CommandError(
            "What should it look at? Give a cluster with -b HOST:PORT, or files with --evidence DIR.",
            MISUNDERSTOOD,
        )
    if arguments.watch is not None and not online:
        raise CommandError("--watch needs a cluster: files do not change.", MISUNDERSTOOD)
    missing = [str(path) for path in arguments.evidence if not path.exists()]
    if missing:
        raise CommandError(
            f"There is no {', '.join(missing)}. (Names of groups go before --evidence.)", MISUNDERSTOOD
        )
    try:
        settings = settings_from(arguments) if online else None
        hints = hints_of(arguments)
    except CommandError as error:
        raise CommandError(str(error), MISUNDERSTOOD) from None
    evidence = read_evidence(arguments.evidence, hints=hints)
    return Examination(settings, arguments.groups or None, evidence, arguments.history or None, store)


@contextmanager
def _store(arguments: argparse.Namespace) -> Iterator[Store | None]:
    """With --no-store a watch still knows what it saw itself."""
    if not arguments.no_store:
        yield Store(arguments.store)
    elif arguments.watch is None:
        yield None
    else:
        with tempfile.TemporaryDirectory(prefix="kelpie-") as folder:
            yield Store(Path(folder))


def _print(arguments: argparse.Namespace, diagnosis: Diagnosis) -> None:
    if arguments.json:
        print(as_json.render(diagnosis))
    else:
        print(terminal.render(diagnosis, colour=_wants_colour()), end="")


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


async def _watch(arguments: argparse.Namespace, examination: Examination, codes: set[str]) -> int:
    """Until Ctrl-C. The first look in full; then a line for each look, and what has come and gone."""
    before: dict[tuple[str, str | None, str], Finding] | None = None
    status = NOTHING_TO_SEE
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            diagnosis, looked = await examination.look()
            diagnosis = _only(diagnosis, codes)
            status = _STATUS[diagnosis.worst] if looked else NOTHING_TO_SEE
            now = {(it.code, it.group, it.cause): it for it in diagnosis.findings}
            if arguments.json:
                print(json.dumps(as_json.as_data(diagnosis)), flush=True)
            elif before is None:
                _print(arguments, diagnosis)
            else:
                _print_changes(diagnosis, before, now)
            sys.stdout.flush()
            before = now
            await asyncio.sleep(arguments.watch)
    return status


def _print_changes(
    diagnosis: Diagnosis,
    before: dict[tuple[str, str | None, str], Finding],
    now: dict[tuple[str, str | None, str], Finding],
) -> None:
    at = moment(diagnosis.cluster.now)
    print(f"{at}  {harmless(verdict(diagnosis))}")
    for key in now.keys() - before.keys():
        print(f"  new   {now[key].code} {now[key].severity.name}: {harmless(now[key].summary)}")
    for key in before.keys() - now.keys():
        print(f"  gone  {before[key].code}: {harmless(before[key].summary)}")


def _only(diagnosis: Diagnosis, codes: set[str]) -> Diagnosis:
    if not codes:
        return diagnosis
    return replace(
        diagnosis,
        findings=tuple(it for it in diagnosis.findings if it.code in codes),
        open=tuple(it for it in diagnosis.open if it.code in codes),
    )


def _codes(given: list[str]) -> set[str]:
    codes = {code.strip().upper() for text in given for code in text.split(",")}
    unknown = codes - rules().keys()
    if unknown:
        raise CommandError(
            f"There is no finding {', '.join(sorted(unknown))}; kelpie explain lists them all.", MISUNDERSTOOD
        )
    return codes


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def _bytes(text: str) -> int:
    """As "512K" or "2M"; "none" is 0."""
    if text.lower() == "none":
        return 0
    number = text.rstrip("KMGkmg")
    unit = _UNITS.get(text[len(number) :].upper())
    if not number.isdecimal() or unit is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes: 512K, 2M, or none")
    return int(number) * unit


def _mind_status(parser: argparse.ArgumentParser) -> None:
    """argparse ends with 2, which here means something critical."""

    def error(message: str) -> NoReturn:
        parser.print_usage(sys.stderr)
        parser.exit(MISUNDERSTOOD, f"{parser.prog}: error: {message}\n")

    parse: Callable[..., Any] = parser.parse_known_args

    def parse_known_args(*given: Any, **named: Any) -> Any:
        arguments, rest = parse(*given, **named)
        if rest:
            error(f"unrecognized arguments: {' '.join(rest)}")
        return arguments, rest

    parser.error = error  # type: ignore[method-assign]
    parser.parse_known_args = parse_known_args  # type: ignore[method-assign]
