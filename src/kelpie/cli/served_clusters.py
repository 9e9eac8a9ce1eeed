"""Which clusters `kelpie serve` shows: of -b and --profile, of ZooKeeper or files, and of tables."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kelpie.cli.command import CommandError
from kelpie.cli.connecting import profile_named
from kelpie.cli.examining import examination_from, pasteable, selection_of, store_for
from kelpie.examination import Examination

if TYPE_CHECKING:
    from kelpie.web.table_watch import Tables
    from kelpie.web.watch import Watch


def named_clusters(arguments: argparse.Namespace) -> dict[str, argparse.Namespace]:
    """By name: the same arguments, with one cluster each. Raises CommandError."""
    found: list[tuple[str, argparse.Namespace]] = []
    for text in arguments.bootstrap_server or ():
        name, equals, addresses = text.partition("=")
        found.append((name, _of(arguments, bootstrap_server=addresses if equals else text)))
    for name in arguments.profile or ():
        profile = profile_named(name)
        config = profile.command_config or arguments.command_config
        found.append((name, _of(arguments, bootstrap_server=profile.bootstrap, command_config=config)))
    if not found and (arguments.command_config or arguments.zookeeper or arguments.evidence):
        file = Path(arguments.command_config).stem if arguments.command_config else ""
        found.append((file or arguments.zookeeper or "evidence", _of(arguments, bootstrap_server=None)))
    if len(found) > 1 and (arguments.zookeeper or arguments.evidence):
        raise CommandError("--zookeeper and --evidence tell of one cluster: with several, leave them out.")
    named: dict[str, argparse.Namespace] = {}
    for name, of in found:
        plain = name.replace("/", " ").strip()  # It is a part of addresses.
        if not plain:
            raise CommandError("A cluster has no name before the sign =. Write NAME=HOST:PORT.")
        if plain in named:
            raise CommandError(f"Two clusters are called {plain}. Name them: -b NAME=HOST:PORT.")
        named[plain] = of
    return named


def _of(arguments: argparse.Namespace, **changes: str | None) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(arguments), "profile": None, **changes})


class Served(NamedTuple):
    watch: "Watch"
    arguments: argparse.Namespace
    """Of this cluster alone."""
    examination: Examination | None
    """None: only tables tell of it."""


def served_clusters(
    arguments: argparse.Namespace, stack: ExitStack, log_dirs_every_s: float | None = None
) -> list[Served]:
    """Started, each in a thread of its own: none waits for another. Raises CommandError.

    `log_dirs_every_s`: how often brokers are asked for the sizes of their log directories; None: never.
    """
    from kelpie.web.meter import Meter  # noqa: PLC0415
    from kelpie.web.watch import Watch  # noqa: PLC0415 - only pages need it.

    clusters = named_clusters(arguments)
    tables = dict(_tables(arguments))
    if not clusters and not tables:
        raise CommandError(
            "What should it show? Give a cluster with -b HOST:PORT or --zookeeper HOST:PORT, files with "
            "--evidence DIR, or tables with --tables DIR."
        )
    served: list[Served] = []
    for name, of in clusters.items():
        store = stack.enter_context(store_for(of))
        examination = examination_from(of, selection_of(of), store)
        finish = partial(pasteable, arguments=of, examination=examination)
        meter = Meter(log_dirs_every_s)
        watch = Watch(name, examination, arguments.every, finish, tables.pop(name, None), meter=meter)
        served.append(Served(watch, of, examination))
    if tables:
        from kelpie.web.table_watch import TableWatch  # noqa: PLC0415

        for name, known in tables.items():
            served.append(Served(TableWatch(name, known, arguments.every), arguments, None))
    for each in served:
        stack.enter_context(each.watch)
    return served


def _tables(arguments: argparse.Namespace) -> Iterator[tuple[str, "Tables"]]:
    """By the name of the cluster."""
    if arguments.tables is None:
        return
    try:
        from kelpie.pipeline.results import NoTables  # noqa: PLC0415 - only tables need it.
        from kelpie.web.table_watch import Tables, clusters_in  # noqa: PLC0415
    except ImportError as error:
        message = f"Tables need what they were made with: pip install 'kelpie-kafka[pipeline]'. ({error})"
        raise CommandError(message) from None
    try:
        for cluster in clusters_in(arguments.tables):
            yield cluster.replace("/", " "), Tables(arguments.tables, cluster)
    except NoTables as error:
        raise CommandError(str(error)) from None
