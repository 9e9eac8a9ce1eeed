"""kelpie doctor: which groups do not consume, why, whom it hits, and what to do now.

Exit status: 0 nothing, or notices; 1 a warning; 2 something critical; 3 not all is known: neither
a broker nor ZooKeeper answered, no file could be read, or a group could not be judged; 64 the command was not
understood.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, option
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.log_options import add_log_options, hints_of
from kelpie.cli.node_path import node_path
from kelpie.client.history import BYTES_PER_PARTITION
from kelpie.client.zookeeper_survey import LIMIT_S, ZooKeeperPlace
from kelpie.cluster.commands import with_properties
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.doctor.rendering import json as as_json
from kelpie.doctor.rendering import terminal
from kelpie.doctor.report import is_judged, verdict
from kelpie.doctor.rules import rules
from kelpie.evidence import read_evidence
from kelpie.examination import Examination, changes
from kelpie.model.quoting import harmless, quoted
from kelpie.model.words import moment
from kelpie.store import Store

NOTHING_TO_SEE = 3

_STATUS = {None: 0, Severity.NOTICE: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}
_WATCH_S = 10.0
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="which groups do not consume, why, and what to do now",
        description="Looks at a cluster, also at one that is half dead, or at files of an incident, and "
        "tells which groups do not consume, why, whom it hits, and what to do. It changes nothing.",
        epilog="Exit status: 0 nothing wrong, or notices; 1 a warning; 2 something critical; 3 not all "
        "is known: neither a broker nor ZooKeeper answered, no file could be read, or a group could not be "
        "judged; 64 the command was not understood.",
    )
    parser.set_defaults(run=_run)
    option(
        parser,
        "--zookeeper HOST:PORT[,…][/PATH]",
        "look into this ZooKeeper as well, or alone: groups of Kafka 0.8's consumers, and which client KoP "
        "counts to which group",
    )
    option(
        parser,
        "--zookeeper-timeout S",
        "seconds that reading ZooKeeper may take; %(default)g if left out",
        type=partial(seconds, most=600),
        default=LIMIT_S,
    )
    option(
        parser,
        "--mapping-root PATH",
        "KoP's setting groupIdZooKeeperPath; %(default)s if left out",
        type=node_path,
        default=KOP_ROOT,
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="only these groups; all if left out")
    option(
        parser,
        "--evidence DIR",
        "files of an incident: logs, describe outputs, segments, archives of these; with or without -b",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
    )
    option(
        parser,
        "--tables DIR",
        "tables that kelpie pipeline made: tells what was found there, and looks at nothing else",
        type=Path,
    )
    option(parser, "--cluster NAME", "of these tables, if they hold more than one cluster")
    add_log_options(parser)
    option(parser, "--json", "print JSON; docs/findings.schema.json says how")
    option(
        parser,
        "--watch SECONDS",
        f"look again and again, and tell what changes; every {_WATCH_S:g} s if not said otherwise",
        nargs="?",
        type=partial(seconds, most=86_400),
        const=_WATCH_S,
    )
    option(parser, "--code KLP…", "tell only findings of this code", action="append", default=[])
    option(
        parser,
        "--history BYTES",
        "how much of the end of each partition of __consumer_offsets is read: 2M if left out; or none",
        type=_bytes,
        default=BYTES_PER_PARTITION,
    )
    keeping = parser.add_mutually_exclusive_group()
    option(
        keeping, "--store DIR", "where earlier surveys are kept; ~/.local/state/kelpie if left out", type=Path
    )
    option(keeping, "--no-store", "remember nothing, and know nothing of before")
    add_connection_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    if "" in arguments.groups:
        raise CommandError("An empty name is no name for a group.")
    codes = _codes(arguments.code)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments.tables is not None:
        diagnosis = _of_tables(arguments).only(codes)
        _print(arguments, diagnosis)
        return _status(diagnosis)
    with _store(arguments) as store:
        examination = _examination(arguments, store)
        try:
            if arguments.watch is not None:
                return asyncio.run(_watch(arguments, examination, codes))
            diagnosis, saw_anything = asyncio.run(examination.examine())
        finally:
            for word in store.words if store is not None else ():
                print(f"kelpie doctor: {word}", file=sys.stderr)
    diagnosis = _pasteable(diagnosis.only(codes), arguments, examination)
    _print(arguments, diagnosis)
    return _status(diagnosis) if saw_anything else NOTHING_TO_SEE


def _status(diagnosis: Diagnosis) -> int:
    """No finding means 0 only if every group was judged."""
    return _STATUS[diagnosis.worst] or (0 if is_judged(diagnosis) else NOTHING_TO_SEE)


def _pasteable(diagnosis: Diagnosis, arguments: argparse.Namespace, examination: Examination) -> Diagnosis:
    """With commands that reach the cluster as this one did, and read the disks that this one has read."""
    disks = arguments.evidence if examination.evidence.commits else []

    def change(line: str) -> str:
        if disks and line.startswith("kelpie rehome "):
            places = " ".join(quoted(str(path)) for path in disks)
            line += f" --offsets-from coordinator history store {places}"
        return with_properties(line, arguments.command_config) if arguments.command_config else line

    return diagnosis.with_commands(change)


def _of_tables(arguments: argparse.Namespace) -> Diagnosis:
    others = (arguments.bootstrap_server, arguments.zookeeper, arguments.evidence or None, arguments.watch)
    if any(other is not None for other in others):
        raise CommandError("--tables goes without -b, --zookeeper, --evidence and --watch.")
    try:
        from kelpie.pipeline.results import NoTables, read_diagnosis  # noqa: PLC0415 - who has no tables needs none.
    except ImportError as error:
        raise CommandError(
            f"Tables need Spark and Delta: pip install 'kelpie-kafka[pipeline]'. ({error})"
        ) from None
    try:
        return read_diagnosis(arguments.tables, arguments.cluster, arguments.groups or None)
    except NoTables as error:
        raise CommandError(str(error)) from None


def _examination(arguments: argparse.Namespace, store: Store | None) -> Examination:
    online = arguments.bootstrap_server is not None or arguments.command_config is not None
    if not online and arguments.zookeeper is None and not arguments.evidence:
        raise CommandError(
            "What should it look at? Give a cluster with -b HOST:PORT or --zookeeper HOST:PORT, or files "
            "with --evidence DIR."
        )
    if arguments.watch is not None and not online and arguments.zookeeper is None:
        raise CommandError("--watch needs a cluster: files do not change.")
    missing = [str(path) for path in arguments.evidence if not path.exists()]
    if missing:
        raise CommandError(f"There is no {', '.join(missing)}. (Names of groups go before --evidence.)")
    try:
        settings = settings_from(arguments) if online else None
        hints = hints_of(arguments)
    except CommandError as error:
        raise CommandError(str(error)) from None
    evidence = read_evidence(arguments.evidence, hints=hints)
    return Examination(
        settings,
        arguments.groups or None,
        evidence,
        arguments.history or None,
        store,
        zookeeper=_place(arguments),
    )


def _place(arguments: argparse.Namespace) -> ZooKeeperPlace | None:
    if arguments.zookeeper is None:
        return None
    return ZooKeeperPlace(arguments.zookeeper, arguments.mapping_root, arguments.zookeeper_timeout)


@contextmanager
def _store(arguments: argparse.Namespace) -> Iterator[Store | None]:
    """With --no-store, --watch still recalls its own surveys."""
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
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        print(terminal.render(diagnosis, colour=sys.stdout.isatty() and not plain), end="")


async def _watch(arguments: argparse.Namespace, examination: Examination, codes: set[str]) -> int:
    """Until Ctrl-C: prints the first diagnosis in full, then a line for each and what has changed."""
    before: Diagnosis | None = None
    status = NOTHING_TO_SEE
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            diagnosis, saw_anything = await examination.examine()
            diagnosis = _pasteable(diagnosis.only(codes), arguments, examination)
            status = _status(diagnosis) if saw_anything else NOTHING_TO_SEE
            if arguments.json:
                print(json.dumps(as_json.as_data(diagnosis)), flush=True)
            elif before is None:
                _print(arguments, diagnosis)
            else:
                _print_changes(before, diagnosis)
            sys.stdout.flush()
            before = diagnosis
            await asyncio.sleep(arguments.watch)
    return status


def _print_changes(before: Diagnosis, diagnosis: Diagnosis) -> None:
    print(f"{moment(diagnosis.cluster.now)}  {harmless(verdict(diagnosis))}")
    new, gone = changes(before, diagnosis)
    for finding in new:
        print(f"  new   {finding.code} {finding.severity.name}: {harmless(finding.summary)}")
    for finding in gone:
        print(f"  gone  {finding.code}: {harmless(finding.summary)}")


def _codes(given: list[str]) -> set[str]:
    codes = {code.strip().upper() for text in given for code in text.split(",")}
    unknown = codes - rules().keys()
    if unknown:
        raise CommandError(
            f"There is no finding {', '.join(sorted(unknown))}; kelpie explain lists them all."
        )
    return codes


def _bytes(text: str) -> int:
    """As "512K" or "2M"; "none" is 0."""
    if text.lower() == "none":
        return 0
    number = text.rstrip("KMGkmg")
    unit = _UNITS.get(text[len(number) :].upper())
    if not number.isdecimal() or unit is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes: 512K, 2M, or none")
    return int(number) * unit
