"""kelpie serve: pages about a cluster for a browser, and their numbers for Prometheus."""

import argparse
import sys
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import add_connection_options
from kelpie.cli.examining import add_examination_options
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.metrics_options import KMINION, add_metrics_options, exporters_from, limits_from, otlp_from
from kelpie.cli.page_access import access_from, add_access_options, listening_from
from kelpie.cli.place_options import place
from kelpie.cli.served_clusters import Served, served_clusters
from kelpie.model.words import first_of

if TYPE_CHECKING:
    from kelpie.web.audit_log import AuditLog
    from kelpie.web.repairs.workshop import Workshop
    from kelpie.web.site import Section

_EVERY_S = 30.0
_LOG_DIRS_EVERY_S = 300.0
"""Brokers name every replica that they have: that is much to ask for at every look."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "serve",
        description="Looks at clusters again and again, and shows them at a local address: what is wrong and "
        "what to do, all groups with their history, incidents, topics, brokers, the offsets topic. Numbers "
        "for Prometheus are at /metrics. It changes nothing, and only this machine can reach it, unless "
        "options say otherwise.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie serve -b kafka-1:9092
                pages at http://127.0.0.1:8088, until Ctrl-C
            kelpie serve -b east=kafka-1:9092 -b west=kafka-9:9092 --tables /data/tables
                two clusters, with the history that tables of the pipeline have
            kelpie serve -b kafka-1:9092 --listen 127.0.0.1:9000 --metrics kelpie,kminion
                at another port, with metrics under the names of two exporters
            kelpie serve -b kafka-1:9092 --listen 127.0.0.1:8088 --passwords people --trusted-proxy 127.0.0.1
                behind a proxy of this machine that speaks https; people log in
            kelpie serve -b kafka-1:9092 --passwords people --allow-repairs
                people who log in may repair, too
        """,
        statuses={
            ExitStatus.OK: "it was ended with Ctrl-C",
            ExitStatus.CANNOT_WRITE: "it cannot listen at this address",
        },
    )
    add_examination_options(parser)
    option(
        parser,
        "--tables DIR",
        "tables of kelpie pipeline: pages of clusters that they know, and the history of those of -b that "
        "have the same name",
        type=place,
    )
    option(
        parser,
        "--every SECONDS",
        "how long to wait between two looks; %(default)g if left out",
        type=partial(seconds, most=86_400),
        default=_EVERY_S,
    )
    add_metrics_options(parser)
    add_access_options(parser)
    add_connection_options(parser, instead=("evidence", "zookeeper", "tables"), several=True)


def _run(arguments: argparse.Namespace) -> int:
    listening = listening_from(arguments)
    exporters = exporters_from(arguments)
    try:
        from kelpie.web.application import application  # noqa: PLC0415 - only pages need a web server.
        from kelpie.web.serving.server import PageServer, listeners, tls_of  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(f"Pages need a web server: pip install 'kelpie-kafka[web]'. ({error})") from None
    with ExitStack() as stack:
        access, audit = access_from(arguments, stack)
        limits = limits_from(arguments)
        served = served_clusters(arguments, stack, _LOG_DIRS_EVERY_S if KMINION in exporters else None)
        watches = [each.watch for each in served]
        otlp_from(arguments, watches, stack)
        sections = _sections(served, audit, stack) if arguments.allow_repairs else []
        app = application(
            watches, listening.host_names, exporters, access=access, sections=sections, limits=limits
        )
        certificate, key = listening.certificate, listening.key
        tls = None if certificate is None or key is None else tls_of(certificate, key)
        try:
            sockets = listeners(listening.host.strip("[]"), listening.port)
        except OSError as error:
            text = f"It cannot listen at {arguments.listen}: {error.strerror}."
            raise CommandError(text, ExitStatus.CANNOT_WRITE) from None
        server = PageServer(app, tls)
        names = first_of([watch.name for watch in watches], 3)
        print(f"Kelpie shows {names} at {listening.address} until Ctrl-C.", flush=True)
        with suppress(KeyboardInterrupt):  # That is how it ends.
            server.run(sockets)
    return 0


def _sections(served: "list[Served]", audit: "AuditLog | None", stack: ExitStack) -> "list[Section]":
    """Raises CommandError."""
    assert audit is not None, "repairs need a login, and a login has its log"
    from kelpie.web.repairs.requests import RepairTarget  # noqa: PLC0415 - needs the extra web.
    from kelpie.web.repairs.section import RepairSection  # noqa: PLC0415
    from kelpie.web.repairs.workshop import Workshop  # noqa: PLC0415

    targets = [
        RepairTarget(
            each.watch.name,
            each.examination.settings,
            each.examination.store,
            each.examination.evidence,
            each.arguments.zookeeper,
            each.arguments.command_config,
        )
        for each in served
        if each.examination is not None and each.examination.settings is not None
    ]
    if not targets:
        raise CommandError("--allow-repairs needs a cluster: give its address with -b HOST:PORT.")
    workshop = stack.enter_context(Workshop(targets, audit))
    stack.callback(_wait_for, workshop)
    return [RepairSection(workshop)]


def _wait_for(workshop: "Workshop") -> None:
    if workshop.is_repairing:
        print("kelpie serve: waiting for a repair that is under way.", file=sys.stderr, flush=True)
