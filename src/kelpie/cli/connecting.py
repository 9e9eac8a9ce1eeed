"""The options by which every command reaches a cluster: -b, --command-config, --timeout."""

import argparse
from dataclasses import replace

from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, option
from kelpie.client.client_errors import BadSettings
from kelpie.client.properties import read_settings
from kelpie.client.settings import Settings


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("connection")
    option(
        options, "-b --bootstrap-server HOST:PORT[,…]", "brokers to begin with; one that answers is enough"
    )
    option(
        options,
        "--command-config FILE",
        "client properties, as Kafka's own tools take them: security, and bootstrap.servers for -b",
    )
    option(
        options,
        "--timeout S",
        "seconds that one answer may take; 5, or the file's request.timeout.ms, if left out",
        type=seconds,
    )


def settings_from(arguments: argparse.Namespace) -> Settings:
    """What the options amount to. Raises CommandError."""
    try:
        settings = read_settings(arguments.command_config, arguments.bootstrap_server)
    except BadSettings as error:
        missing = arguments.bootstrap_server is None and arguments.command_config is None
        hint = " Give its address with -b HOST:PORT." if missing else ""
        raise CommandError(f"{'No broker is named.' if missing else error}{hint}") from None
    limit = arguments.timeout
    if limit is None:
        return settings
    return replace(
        settings, request_timeout_s=limit, connect_timeout_s=min(settings.connect_timeout_s, limit)
    )
