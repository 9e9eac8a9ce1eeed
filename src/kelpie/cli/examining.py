"""What commands share that examine a cluster or files: their options, and the examination made of them."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, option, reads
from kelpie.cli.connecting import settings_from
from kelpie.cli.environment import STATE
from kelpie.cli.log_options import add_log_options, hints_of
from kelpie.cli.node_path import node_path
from kelpie.cli.progress import progress
from kelpie.client.history import BYTES_PER_PARTITION
from kelpie.client.zookeeper_survey import LIMIT_S, ZooKeeperPlace
from kelpie.cluster.commands import with_properties
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.examination import Examination
from kelpie.model.quoting import quoted
from kelpie.model.selection import Selection
from kelpie.observations import Observations
from kelpie.store import Store

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def add_examination_options(parser: argparse.ArgumentParser) -> None:
    """Which groups, and where to look besides the brokers. The options of a connection are not among them."""
    reads(parser, STATE)
    parser.add_argument(
        "groups",
        nargs="*",
        metavar="GROUP",
        help="only these groups, by name or pattern ('billing-*'); all if left out",
    )
    option(parser, "--exclude GROUP", "without these groups, by name or pattern", action="append", default=[])
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
    option(
        parser,
        "--evidence DIR",
        "files of an incident: logs, describe outputs, segments, archives of these; with or without -b",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
    )
    add_log_options(parser)
    option(
        parser,
        "--history BYTES",
        "how much of the end of each partition of __consumer_offsets is read: 2M if left out; or none",
        type=_bytes,
        default=BYTES_PER_PARTITION,
    )
    option(
        parser,
        "--gentle",
        "ask a busy cluster for less: no log ends of the past, 256K of history, topics as two brokers "
        "see them",
    )
    keeping = parser.add_mutually_exclusive_group()
    option(
        keeping, "--store DIR", "where earlier surveys are kept; ~/.local/state/kelpie if left out", type=Path
    )
    option(keeping, "--no-store", "remember nothing, and know nothing of before")


def selection_of(arguments: argparse.Namespace) -> Selection:
    """Raises CommandError."""
    if "" in [*arguments.groups, *arguments.exclude]:
        raise CommandError("An empty name is no name for a group.")
    return Selection(arguments.groups or None, arguments.exclude)


def is_online(arguments: argparse.Namespace) -> bool:
    return arguments.bootstrap_server is not None or arguments.command_config is not None


def examination_from(arguments: argparse.Namespace, selection: Selection, store: Store | None) -> Examination:
    """Raises CommandError."""
    if not is_online(arguments) and arguments.zookeeper is None and not arguments.evidence:
        raise CommandError(
            "What should it look at? Give a cluster with -b HOST:PORT or --zookeeper HOST:PORT, or files "
            "with --evidence DIR.",
        )
    missing = [str(path) for path in arguments.evidence if not path.exists()]
    if missing:
        raise CommandError(f"There is no {', '.join(missing)}. (Names of groups go before --evidence.)")
    settings = settings_from(arguments) if is_online(arguments) else None
    return Examination(
        settings,
        selection,
        _evidence(arguments),
        arguments.history or None,
        store,
        gentle=arguments.gentle,
        zookeeper=_place(arguments),
    )


def _evidence(arguments: argparse.Namespace) -> Observations:
    """What files say. Raises CommandError."""
    if not arguments.evidence and arguments.time_zone is None and not arguments.log_layout:
        return Observations()
    from kelpie.evidence import read_evidence  # noqa: PLC0415 - a look at brokers starts sooner without it.

    hints = hints_of(arguments)
    with progress(arguments.command, "reading files"):
        return read_evidence(arguments.evidence, hints=hints)


def pasteable(diagnosis: Diagnosis, arguments: argparse.Namespace, examination: Examination) -> Diagnosis:
    """With commands that reach the cluster as this one did, and read the disks that this one has read."""
    disks = arguments.evidence if examination.evidence.commits else []
    if not disks and not arguments.command_config:
        return diagnosis

    def change(line: str) -> str:
        if disks and line.startswith("kelpie rehome "):
            places = " ".join(quoted(str(path)) for path in disks)
            line += f" --offsets-from coordinator history store {places}"
        return with_properties(line, arguments.command_config) if arguments.command_config else line

    return diagnosis.with_commands(change)


def _place(arguments: argparse.Namespace) -> ZooKeeperPlace | None:
    if arguments.zookeeper is None:
        return None
    return ZooKeeperPlace(arguments.zookeeper, arguments.mapping_root, arguments.zookeeper_timeout)


@contextmanager
def store_for(arguments: argparse.Namespace) -> Iterator[Store | None]:
    """Says at the end what is wrong with it. With --no-store, --watch still recalls its own surveys."""
    if arguments.no_store and getattr(arguments, "watch", None) is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="kelpie-") as folder:
        store = Store(Path(folder) if arguments.no_store else arguments.store)
        try:
            yield store
        finally:
            for word in store.words:
                print(f"kelpie {arguments.command}: {word}", file=sys.stderr)


def _bytes(text: str) -> int:
    """As "512K" or "2M"; "none" is 0."""
    if text.lower() == "none":
        return 0
    number = text.rstrip("KMGkmg")
    unit = _UNITS.get(text[len(number) :].upper())
    if not number.isdecimal() or unit is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes: 512K, 2M, or none")
    return int(number) * unit


def severity(text: str) -> Severity:
    try:
        return Severity[text.upper()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is no severity: notice, warning or critical") from None
