"""kelpie serve: pages about a cluster for a browser, and their numbers for Prometheus."""

import argparse
import sys
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import add_connection_options
from kelpie.cli.examining import (
    add_examination_options,
    examination_from,
    pasteable,
    selection_of,
    store_for,
)
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.page_access import access_from, add_access_options, listening_from
from kelpie.examination import Examination

if TYPE_CHECKING:
    from kelpie.web.audit_log import AuditLog
    from kelpie.web.repairs.workshop import Workshop
    from kelpie.web.site import Section

_EVERY_S = 30.0
_EXPORTERS = ("kelpie", "kafka-exporter", "kminion", "lag-exporter", "burrow")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "serve",
        description="Looks at a cluster again and again, and shows it at a local address: what is wrong and "
        "what to do, all groups, brokers, the offsets topic. Numbers for Prometheus are at /metrics. It "
        "changes nothing, and only this machine can reach it, unless options say otherwise.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie serve -b kafka-1:9092
                pages at http://127.0.0.1:8088, until Ctrl-C
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
        "--every SECONDS",
        "how long to wait between two looks; %(default)g if left out",
        type=partial(seconds, most=86_400),
        default=_EVERY_S,
    )
    option(
        parser,
        "--metrics NAMES",
        f"names that /metrics uses, one or several of {', '.join(_EXPORTERS)}; %(default)s if left out. "
        "With burrow, its addresses below /v3/kafka are there, too",
        default=_EXPORTERS[0],
    )
    add_access_options(parser)
    add_connection_options(parser, instead=("evidence", "zookeeper"))


def _run(arguments: argparse.Namespace) -> int:
    listening = listening_from(arguments)
    exporters = _exporters(arguments.metrics)
    try:
        import uvicorn  # noqa: PLC0415 - who does not serve needs none of it.

        from kelpie.web.application import application  # noqa: PLC0415
        from kelpie.web.watch import Watch  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(f"Pages need a web server: pip install 'kelpie-kafka[web]'. ({error})") from None
    name = arguments.profile or arguments.bootstrap_server or arguments.zookeeper or "evidence"
    name = name.replace("/", " ")  # It is a part of addresses.
    with ExitStack() as stack:
        access, audit = access_from(arguments, stack)
        store = stack.enter_context(store_for(arguments))
        examination = examination_from(arguments, selection_of(arguments), store)
        finish = partial(pasteable, arguments=arguments, examination=examination)
        watch = stack.enter_context(Watch(name, examination, arguments.every, finish))
        sections = _sections(arguments, name, examination, audit, stack)
        app = application([watch], listening.host_names, exporters, access=access, sections=sections)
        config = uvicorn.Config(
            app,
            listening.host.strip("[]"),
            listening.port,
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # Anybody on this machine could send them.
            server_header=False,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
        )
        server = uvicorn.Server(config)
        print(f"Kelpie shows {name} at {listening.address} until Ctrl-C.", flush=True)
        try:
            with suppress(KeyboardInterrupt):  # That is how it ends.
                server.run()
        except SystemExit:
            raise CommandError(f"It cannot listen at {arguments.listen}.", ExitStatus.CANNOT_WRITE) from None
    return 0


def _sections(
    arguments: argparse.Namespace,
    name: str,
    examination: Examination,
    audit: "AuditLog | None",
    stack: ExitStack,
) -> "list[Section]":
    """Raises CommandError."""
    if not arguments.allow_repairs:
        return []
    if examination.settings is None:
        raise CommandError("--allow-repairs needs a cluster: give its address with -b HOST:PORT.")
    assert audit is not None, "repairs need a login, and a login has its log"
    from kelpie.web.repairs.requests import RepairTarget  # noqa: PLC0415 - needs the extra web.
    from kelpie.web.repairs.section import RepairSection  # noqa: PLC0415
    from kelpie.web.repairs.workshop import Workshop  # noqa: PLC0415

    target = RepairTarget(
        name,
        examination.settings,
        examination.store,
        examination.evidence,
        arguments.zookeeper,
        arguments.command_config,
    )
    workshop = stack.enter_context(Workshop([target], audit))
    stack.callback(_wait_for, workshop)
    return [RepairSection(workshop)]


def _wait_for(workshop: "Workshop") -> None:
    if workshop.is_repairing:
        print("kelpie serve: waiting for a repair that is under way.", file=sys.stderr, flush=True)


def _exporters(text: str) -> list[str]:
    """Raises CommandError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in _EXPORTERS]
    if unknown or not names:
        raise CommandError(f"--metrics {text!r}: there are {', '.join(_EXPORTERS)}, separated by commas.")
    return list(dict.fromkeys(names))
