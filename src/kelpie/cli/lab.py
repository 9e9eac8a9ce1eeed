"""kelpie lab: a Kafka-compatible cluster in one process, to test consumers with, and scenarios to watch."""

import argparse
import asyncio
import logging
import math
import shlex
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TextIO

from kelpie.api.laboratory import play_scenario, scenario_named, scenarios
from kelpie.attribution.plans import PLANS
from kelpie.broker.personas import RELEASES
from kelpie.cli.command import CommandError, describe, option, reads, setting
from kelpie.cli.environment import CACHE, JAVA_HOME, REPOSITORY
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.lab_pages import bound, lab_pages
from kelpie.cli.page_access import PORT
from kelpie.cli.terminal import text_width
from kelpie.documents.lab import lab_cluster_document, play_document, scenarios_document
from kelpie.lab.cluster import Cluster
from kelpie.lab.population import Population
from kelpie.lab.scenarios import Moment, Scenario
from kelpie.model.cells import fill
from kelpie.model.kelpie_error import KelpieError
from kelpie.real.cluster_errors import RealError

_HOLD_S = 600.0


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "lab",
        description="Starts a Kafka-compatible cluster in this process, without Java, and plays scenarios "
        "on such clusters.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_up(actions)
    _add_list(actions)
    _add_run(actions)


def _add_up(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    up = actions.add_parser(
        "up",
        help="start a cluster; it runs until Ctrl-C",
        description="Starts a cluster on loopback. It runs until Ctrl-C, and keeps nothing.",
    )
    up.set_defaults(run=_explained(_up))
    describe(
        up,
        examples="""
            kelpie lab up
                three brokers of Kafka 4.3's kind
            kelpie lab up --brokers 5 --port 19092 --persona 2.8 --config offsets.topic.num.partitions=5
                five of 2.8's kind, on known ports
            kelpie lab up --groups 12 --serve
                a dozen groups with consumers, and pages with buttons for faults
        """,
        statuses={ExitStatus.OK: "it ended as asked"},
    )
    option(up, "--brokers N", "how many brokers; %(default)s if left out", type=int, default=3)
    option(up, "--port P", "port of the first broker; the others follow it", type=int)
    _add_persona(up, "4.3")
    option(
        up, "--config NAME=VALUE", "a setting of every broker, by Kafka's name", action="append", default=[]
    )
    option(
        up, "--control-port P", "port of the HTTP control API; a free one if left out", type=int, default=0
    )
    option(up, "--log DIR", "write the log of each broker into this folder, in Kafka's words", type=Path)
    option(
        up,
        "--attribution PLAN",
        "count what each group reads, and know the group of a fetch by this plan: "
        f"{', '.join(PLANS)}; see docs/attribution.md",
        choices=PLANS,
    )
    option(
        up,
        "--zookeeper HOST:PORT",
        "keep the mapping of the plan in this ZooKeeper; in memory if left out",
    )
    option(
        up,
        "--groups N",
        "so many groups with real consumers, and a producer; the offsets topic has two replicas then",
        type=int,
    )
    option(
        up,
        "--serve HOST:PORT",
        f"pages as of kelpie serve, with buttons for faults; at 127.0.0.1:{PORT} if no address is given",
        nargs="?",
        const=f"127.0.0.1:{PORT}",
    )
    add_json_option(up, "lab-up", "print where it is, once it is up, as JSON")
    _add_verbose(up)


def _add_list(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    listing = actions.add_parser(
        "list", help="show the scenarios", description="Shows the scenarios that can be run."
    )
    listing.set_defaults(run=_list)
    describe(
        listing,
        examples="""
            kelpie lab list
                all scenarios, with what happens in each
        """,
        statuses={ExitStatus.OK: "they are listed"},
    )
    add_json_option(listing, "lab-list")


def _add_run(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    run = actions.add_parser(
        "run",
        help="play a scenario",
        description="Plays a scenario on a cluster of its own, and says step by step what happens.",
    )
    run.set_defaults(run=_explained(_run))
    describe(
        run,
        examples="""
            kelpie lab run coordinator-outage
                watch it
            kelpie lab run slow-poll --hold 120
                keep the fault for two minutes, to look at it with kelpie doctor
        """,
        statuses={
            ExitStatus.OK: "all happened that should",
            ExitStatus.NO: "something did not happen that should have",
        },
    )
    run.add_argument("scenario", metavar="SCENARIO", help="its name: see kelpie lab list")
    _add_persona(run, None)
    option(
        run,
        "--hold SECONDS",
        "stop while the fault is there, to look at the cluster, until Enter or for so long; "
        f"{_HOLD_S:.0f} s if left out",
        nargs="?",
        type=float,
        const=_HOLD_S,
    )
    option(run, "--log DIR", "keep the logs of the brokers in this folder, in Kafka's words", type=Path)
    add_json_option(run, "lab-run", "print what happened as JSON, at the end")
    _add_verbose(run)
    reads(run, JAVA_HOME, CACHE, REPOSITORY)  # Some scenarios have a real ZooKeeper.


def _add_persona(parser: argparse.ArgumentParser, default: str | None) -> None:
    known = ", ".join(RELEASES)
    otherwise = f"{default} if left out" if default else "as the scenario has it if left out"
    option(
        parser, "--persona V", f"the release that the brokers pass for: {known}; {otherwise}", default=default
    )


def _add_verbose(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "-v --verbose",
        "log what happens to stderr; twice: every request and answer",
        action="count",
        default=0,
    )


def _up(arguments: argparse.Namespace) -> int:
    _log(arguments.verbose)
    if arguments.port is not None and not 0 < arguments.port < 65_536:
        raise CommandError(f"Port {arguments.port} does not exist; ports go from 1 to 65535.")
    config = dict(map(setting, arguments.config))
    if arguments.groups is not None:
        # So that one dead broker leaves all coordinators alive, and two do not.
        config.setdefault("offsets.topic.replication.factor", str(min(2, arguments.brokers)))
    cluster = Cluster(
        arguments.brokers,
        config=config,
        persona=arguments.persona,
        port=arguments.port,
        control_port=arguments.control_port,
        log_folder=arguments.log,
        attribution=arguments.attribution,
        zookeeper=arguments.zookeeper,
    )
    listener = bound(arguments.serve) if arguments.serve is not None else None
    show = _print_document if arguments.json else _print_addresses
    return asyncio.run(_stay_up(cluster, show, arguments.groups, listener))


async def _stay_up(
    cluster: Cluster,
    show: Callable[[Cluster, str], None],
    groups: int | None,
    listener: socket.socket | None,
) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, ended.set)
    async with cluster, AsyncExitStack() as opened:
        if groups is not None:
            await opened.enter_async_context(Population(cluster, groups))
        address = ""
        if listener is not None:
            address = await opened.enter_async_context(lab_pages(cluster, listener))
        show(cluster, address)
        await ended.wait()
    return ExitStatus.OK


def _print_document(cluster: Cluster, pages: str) -> None:
    print_json(lab_cluster_document(cluster, pages))


def _print_addresses(cluster: Cluster, pages: str) -> None:
    brokers = len(cluster.node_ids)
    addresses = cluster.bootstrap_servers.split(",")
    print(f"Kafka {cluster.persona.name}, {brokers} broker{'s' * (brokers > 1)}")
    # Three addresses are enough for any client, and fit on a line.
    print(f"  bootstrap  {','.join(addresses[:3])}")
    print(f"  control    {cluster.control_address}")
    if pages:
        print(f"  pages      {pages}")
    if cluster.attribution is not None:
        print(f"  counts     by group; plan {cluster.attribution}, mapping in {cluster.mapping_place}")
    print("\nTry:")
    print(f"  kcat -L -b {addresses[0]}")
    print(f"  curl -X POST {cluster.control_address}/brokers/{cluster.node_ids[-1]}/kill")
    if cluster.attribution is not None:
        print(f"  curl {cluster.control_address}/brokers/{cluster.node_ids[0]}/metrics")
        print(f"  curl {cluster.control_address}/mappings")
    print("\nCtrl-C ends it.", flush=True)


def _list(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json(scenarios_document(scenarios().values()))
        return ExitStatus.OK
    for scenario in scenarios().values():
        print(scenario.name)
        paragraphs = scenario.description.split("\n\n")
        print("\n\n".join(fill(text, text_width(), "    ", "    ") for text in paragraphs))
        print(f"\n    personas: {', '.join(scenario.personas)}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    _log(arguments.verbose)
    scenario, persona = scenario_named(arguments.scenario, arguments.persona)
    hold_s: float | None = arguments.hold
    if hold_s is not None and not hold_s > 0:
        raise CommandError(f"--hold {hold_s:g}: give the seconds to wait at most, more than 0.")
    return asyncio.run(_play(scenario, persona, hold_s, arguments.log, is_json=arguments.json))


async def _play(
    scenario: Scenario, persona: str, hold_s: float | None, logs: Path | None, *, is_json: bool
) -> int:
    """Told as it happens, or as JSON at the end."""

    def tell(text: str) -> None:
        if not is_json:
            print(text, flush=True)

    async def hold(moment: Moment) -> None:
        if hold_s is not None and not moment.is_calm:
            await _hold(moment, hold_s, sys.stderr if is_json else None)

    tell(f"{scenario.name}\n{fill(scenario.summary, text_width())}\n")
    play = await play_scenario(
        scenario.name, persona=persona, tell=tell, observer=hold, logs=logs, width=text_width()
    )
    if is_json:
        print_json(play_document(play))
    elif play.failures:
        print(f"\n{len(play.failures)} of the things that should happen did not.", file=sys.stderr)
    else:
        print("\nAll as expected.")
    return ExitStatus.NO if play.failures else ExitStatus.OK


async def _hold(moment: Moment, limit_s: float, to: TextIO | None = None) -> None:
    """The fault stays while the user inspects the cluster."""
    bootstrap = ",".join(moment.cluster.bootstrap_servers.split(",")[:3])
    command = f"kelpie doctor -b {bootstrap}"
    if moment.zookeeper is not None:
        command += f" --zookeeper {moment.zookeeper}"
    if moment.needs_logs:
        command += f" \\\n     --evidence {shlex.quote(str(moment.logs))}"
    if moment.seconds_of_history:
        command += f" --watch {max(1, math.ceil(moment.seconds_of_history))}"
    print(f"\n   The fault is there now. Look at it from another terminal:\n   {command}", file=to)
    if moment.seconds_of_history:
        print("   One look cannot tell it: the second one does. Ctrl-C ends the watch.", file=to)
    print(f"   bootstrap  {bootstrap}", file=to)
    print(f"   logs       {moment.logs}", file=to)
    print(f"   Enter goes on; so does waiting for {limit_s:g} s.", flush=True, file=to)
    await _enter(limit_s)


async def _enter(limit_s: float) -> None:
    """Returns when the user presses Enter, or when the time is over."""
    pressed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if sys.stdin.readline():
            pressed.set()
        else:
            loop.remove_reader(sys.stdin)  # Standard input has ended: Enter cannot be pressed.

    try:
        loop.add_reader(sys.stdin, readable)
    except (OSError, ValueError):
        await asyncio.sleep(limit_s)
        return
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(pressed.wait(), limit_s)
    finally:
        loop.remove_reader(sys.stdin)


def _log(verbose: int) -> None:
    if verbose:
        logger = logging.getLogger("kelpie.lab")
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)


def _explained(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command, with errors of labs as errors that a user can mend."""

    def command(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except (KelpieError, RealError) as error:
            raise CommandError(str(error)) from None

    return command
