"""kelpie serve: pages about a cluster for a browser, and their numbers for Prometheus."""

import argparse
import ipaddress
from contextlib import ExitStack, suppress
from functools import partial

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

_PORT = 8088
_EVERY_S = 30.0
_EXPORTERS = ("kelpie", "kafka-exporter", "kminion", "lag-exporter", "burrow")
_NAMES_OF_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "serve",
        description="Looks at a cluster again and again, and shows it at a local address: what is wrong and "
        "what to do, all groups, brokers, the offsets topic. Numbers for Prometheus are at /metrics. It "
        "changes nothing, and only this machine can reach it.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie serve -b kafka-1:9092
                pages at http://127.0.0.1:8088, until Ctrl-C
            kelpie serve -b kafka-1:9092 --listen 127.0.0.1:9000 --metrics kelpie,kminion
                at another port, with metrics under the names of two exporters
        """,
        statuses={
            ExitStatus.OK: "it was ended with Ctrl-C",
            ExitStatus.CANNOT_WRITE: "it cannot listen at this address",
        },
    )
    add_examination_options(parser)
    option(
        parser,
        "--listen HOST:PORT",
        f"where; a loopback address. 127.0.0.1:{_PORT} if left out",
        default=f"127.0.0.1:{_PORT}",
    )
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
    add_connection_options(parser, instead=("evidence", "zookeeper"))


def _run(arguments: argparse.Namespace) -> int:
    host, port = _address(arguments.listen)
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
        store = stack.enter_context(store_for(arguments))
        examination = examination_from(arguments, selection_of(arguments), store)
        finish = partial(pasteable, arguments=arguments, examination=examination)
        watch = stack.enter_context(Watch(name, examination, arguments.every, finish))
        app = application([watch], [host, *_NAMES_OF_LOOPBACK], exporters)
        config = uvicorn.Config(app, host.strip("[]"), port, log_level="warning", access_log=False)
        server = uvicorn.Server(config)
        print(f"Kelpie shows {name} at http://{host}:{port}/ until Ctrl-C.", flush=True)
        try:
            with suppress(KeyboardInterrupt):  # That is how it ends.
                server.run()
        except SystemExit:
            raise CommandError(f"It cannot listen at {arguments.listen}.", ExitStatus.CANNOT_WRITE) from None
    return 0


def _address(text: str) -> tuple[str, int]:
    """Raises CommandError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise CommandError(f"--listen {text!r} is no address. Write HOST:PORT, as in 127.0.0.1:{_PORT}.")
    if host != "localhost" and not _is_loopback(host):
        raise CommandError(
            f"--listen {text}: only a loopback address can be used, since there is no login yet. Use "
            f"127.0.0.1:{port}, and reach it from elsewhere through ssh -L {port}:127.0.0.1:{port} HOST."
        )
    return host, int(port)


def _exporters(text: str) -> list[str]:
    """Raises CommandError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in _EXPORTERS]
    if unknown or not names:
        raise CommandError(f"--metrics {text!r}: there are {', '.join(_EXPORTERS)}, separated by commas.")
    return list(dict.fromkeys(names))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
