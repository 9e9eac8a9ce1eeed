"""kelpie mcp: tools for assistants over standard input and output. They read, and change nothing."""

import argparse
from functools import partial
from pathlib import Path

from kelpie.api.places import with_limit
from kelpie.assistant.sources import Sources
from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, describe, option, reads
from kelpie.cli.connecting import profile_named
from kelpie.cli.environment import CONFIG
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.place_options import place
from kelpie.client.client_errors import BadSettings
from kelpie.client.properties import read_settings
from kelpie.client.settings import Settings

_LIMIT_S = 60.0


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "mcp",
        description="Serves the Model Context Protocol on standard input and output, for an assistant that "
        "starts it. Its tools examine, explain and look up; they change nothing, and reach only the clusters "
        "and folders that are named here.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie mcp -b production=kafka-1:9092
                one cluster, which the assistant knows as production
            kelpie mcp --profile production --evidence incident/ --tables tables/
                a cluster of profiles.toml, files of an incident, tables of the pipeline
        """,
        statuses={ExitStatus.OK: "the assistant has gone"},
    )
    option(parser, "-b --bootstrap-server [NAME=]HOST:PORT[,…]", "a cluster", action="append", default=[])
    option(parser, "--command-config FILE", "client properties for the clusters of -b")
    option(parser, "--profile NAME", "a cluster of profiles.toml", action="append", default=[])
    option(parser, "--evidence DIR", "a folder of evidence", action="append", default=[], type=Path)
    option(parser, "--tables TABLES", "a folder of tables", action="append", default=[], type=place)
    option(parser, "--timeout S", "seconds that one answer of a broker may take", type=seconds)
    option(
        parser,
        "--limit S",
        "seconds that one call may take; %(default)g if left out",
        type=partial(seconds, most=3600),
        default=_LIMIT_S,
    )
    reads(parser, CONFIG)


def _run(arguments: argparse.Namespace) -> int:
    sources = _sources(arguments)
    try:
        from kelpie.assistant.server import assistant_server  # noqa: PLC0415 - the SDK takes a second.
    except ImportError as error:
        raise CommandError(
            f"Assistants need the extra mcp: pip install 'kelpie-kafka[mcp]'. ({error})"
        ) from None
    assistant_server(sources, limit_s=arguments.limit).run("stdio")
    return ExitStatus.OK


def _sources(arguments: argparse.Namespace) -> Sources:
    """Raises CommandError."""
    clusters: dict[str, Settings] = {}
    for text in arguments.bootstrap_server:
        name, equals, addresses = text.partition("=")
        clusters[name] = _settings(arguments, addresses if equals else text, arguments.command_config)
    for name in arguments.profile:
        profile = profile_named(name)
        clusters[name] = _settings(arguments, profile.bootstrap, profile.command_config)
    folders = [*arguments.evidence, *arguments.tables]
    missing = [str(path) for path in folders if not path.exists()]
    if missing:
        raise CommandError(f"There is no {', '.join(missing)}.")
    if not clusters and not folders:
        raise CommandError(
            "What may be asked? Name a cluster with -b, or a folder with --evidence or --tables."
        )
    evidence = {path.absolute().name: path for path in arguments.evidence}
    tables = {path.absolute().name: path for path in arguments.tables}
    names = [*arguments.bootstrap_server, *arguments.profile, *arguments.evidence]
    if len({**clusters, **evidence}) < len(names) or len(tables) < len(arguments.tables):
        raise CommandError("Two of them have the same name. Name clusters so: -b NAME=HOST:PORT.")
    return Sources(clusters, evidence, tables)


def _settings(arguments: argparse.Namespace, bootstrap: str | None, config: str | None) -> Settings:
    try:
        return with_limit(read_settings(config, bootstrap), arguments.timeout)
    except BadSettings as error:
        raise CommandError(str(error)) from None
