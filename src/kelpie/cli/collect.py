"""kelpie collect: looks at a cluster again and again, and keeps each look in a folder."""

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from kelpie.cli.amounts import duration, size
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json_line
from kelpie.cli.place_options import place
from kelpie.client.client_errors import BadSettings
from kelpie.collect.collecting import Collector, CollectPlan, Round, Tell
from kelpie.collect.landing import instant_of
from kelpie.collect.landing_folders import LandingRefused
from kelpie.documents.collected import round_document
from kelpie.model.words import moment
from kelpie.places import Place

if TYPE_CHECKING:
    from kelpie.client.settings import Settings

_EVERY_S = 30.0
_LIMIT_S = 120.0
_MOST_DISK = 1_000_000_000
_HEAD = "TIME (UTC)           GROUPS  PARTITIONS  UNASKED      BYTES     TOOK"


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "collect",
        description="Takes a survey of the cluster every so often and writes it as one file into a folder: "
        "metadata as every broker tells it, groups, committed offsets, ends of logs, settings, and what "
        "could not be asked. kelpie doctor --evidence and kelpie pipeline run --from read the folder. It "
        "changes nothing in the cluster. Ctrl-C ends it after the round that is under way.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie collect -b kafka-1:9092 --into landing
                a look every 30 s, until Ctrl-C
            kelpie collect -b kafka-1:9092 --into landing --every 10s --for 2h --most-disk 500MB
                for two hours
        """,
        statuses={ExitStatus.OK: "it ended as asked"},
    )
    option(
        parser,
        "--into DIR",
        "where the files go: a path, or hdfs://HOST:PORT/…, s3://BUCKET/…",
        required=True,
        type=place,
    )
    option(
        parser,
        "--every TIME",
        f"from the start of a round to the next: 10s, 5m; {_EVERY_S:g}s if left out",
        type=duration,
        default=_EVERY_S,
    )
    option(parser, "--for TIME", "end after so long: 2h; else it goes on", dest="lasts", type=duration)
    option(
        parser,
        "--most-disk SIZE",
        "what the files of this cluster may take, 500MB; 1GB if left out. The oldest go first",
        type=size,
        default=_MOST_DISK,
    )
    option(
        parser,
        "--round-limit TIME",
        f"a round that takes longer is broken off; {_LIMIT_S:g}s if left out",
        type=duration,
        default=_LIMIT_S,
    )
    option(
        parser,
        "--zookeeper HOST:PORT[/PATH]",
        "what Kafka keeps in ZooKeeper as well, or, without -b, that alone",
    )
    told = parser.add_mutually_exclusive_group()
    option(told, "-q --quiet", "only what a person should know")
    add_json_option(parser, "collect", "print a line of JSON for each round", among=told)
    add_connection_options(parser, instead=("zookeeper",))


def _run(arguments: argparse.Namespace) -> int:
    settings: Settings | None = None
    if arguments.zookeeper is None or arguments.bootstrap_server or arguments.command_config:
        settings = settings_from(arguments)
    plan = CollectPlan(
        arguments.into,
        settings,
        arguments.zookeeper,
        arguments.every,
        arguments.lasts,
        arguments.most_disk,
        arguments.round_limit,
    )
    try:
        page = _Page(arguments.into, arguments.every, quiet=arguments.quiet)
        return asyncio.run(_collect(plan, _print_document if arguments.json else page.tell))
    except (LandingRefused, BadSettings) as error:
        raise CommandError(str(error)) from None


async def _collect(plan: CollectPlan, tell: Tell) -> int:
    stop = asyncio.Event()
    task = asyncio.create_task(Collector(plan, tell).run(stop))
    loop = asyncio.get_running_loop()

    def asked_to_end() -> None:
        if stop.is_set():
            task.cancel()  # Whoever asks twice does not want to wait.
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked_to_end)
    try:
        await task
    except asyncio.CancelledError:
        return ExitStatus.INTERRUPTED
    return 0


def _print_document(done: Round) -> None:
    print_json_line(round_document(done))


class _Page:
    """One line for each round; quiet: only what is out of the ordinary."""

    def __init__(self, folder: Place, every_s: float, *, quiet: bool) -> None:
        self._folder, self._every_s, self._quiet = folder, every_s, quiet
        self._begun = False

    def tell(self, done: Round) -> None:
        if not self._begun and not self._quiet:
            print(f"Cluster {done.cluster} into {self._folder}, every {self._every_s:g} s.\n{_HEAD}")
        self._begun = True
        if not self._quiet:
            written = amount(done.size) if done.size else "-"
            print(
                f"{moment(done.at):<19.19} {done.groups:>7,} {done.partitions:>11,} {done.unasked:>8,} "
                f"{written:>10} {done.took_s:>6.1f} s"
            )
            if done.deleted:
                print(f"  {_deleted(done)}")
        for word in done.words:
            print(f"kelpie collect: {word}", file=sys.stderr)
        sys.stdout.flush()


def _deleted(done: Round) -> str:
    first, last = done.deleted[0], done.deleted[-1]
    until = f" to {moment(instant_of(last.stamp))}" if last is not first else ""
    files = "1 file" if last is first else f"{len(done.deleted):,} files"
    return f"deleted to stay below the limit: {files}, of {moment(instant_of(first.stamp))}{until}"


def amount(count: int) -> str:
    """Bytes, as people read them."""
    for unit, size_ in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= size_:
            return f"{count / size_:.1f} {unit}"
    return f"{count} B"
