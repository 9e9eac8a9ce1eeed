"""How every command reaches a cluster: -b, --command-config, --profile, --timeout, and the environment.

An option counts first, then the profile, then the environment: KELPIE_BOOTSTRAP stands for -b, and
KELPIE_COMMAND_CONFIG for --command-config. A command that is given something else to look at, such as files,
does not look at the environment's cluster as well: the two may have nothing to do with each other.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial

from kelpie.api.places import with_limit
from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, option, reads
from kelpie.cli.environment import BOOTSTRAP, COMMAND_CONFIG, CONFIG
from kelpie.client.client_errors import BadSettings
from kelpie.client.profiles import Profile, read_profile
from kelpie.client.properties import read_settings
from kelpie.client.settings import Settings
from kelpie.model.quoting import harmless


def add_connection_options(
    parser: argparse.ArgumentParser, *, instead: Sequence[str] = (), several: bool = False
) -> None:
    """`instead`: options that name something else to look at, by the names of their values.

    `several`: -b and --profile may be repeated, one for each cluster; -b may give a name to it.
    """
    parser.set_defaults(complete=partial(complete_several if several else complete, instead=instead))
    repeated = {"action": "append"} if several else {}
    of_several = "; once for each cluster" if several else ""
    reads(parser, BOOTSTRAP, COMMAND_CONFIG, CONFIG)
    options = parser.add_argument_group("connection")
    option(
        options,
        f"-b --bootstrap-server {'[NAME=]' if several else ''}HOST:PORT[,…]",
        f"brokers to begin with; one that answers is enough; ${BOOTSTRAP} if left out{of_several}",
        **repeated,
    )
    option(
        options,
        "--command-config FILE",
        "client properties, as Kafka's own tools take them: security, and bootstrap.servers for -b; "
        f"${COMMAND_CONFIG} if left out",
    )
    option(
        options,
        "--profile NAME",
        f"the cluster that this name stands for, in profiles.toml{of_several}",
        **repeated,
    )
    option(
        options,
        "--timeout S",
        "seconds that one answer may take; 5, or the file's request.timeout.ms, if left out",
        type=seconds,
    )


def complete(arguments: argparse.Namespace, instead: Sequence[str] = ()) -> None:
    """Fills in what the options leave out, from the profile or the environment. Raises CommandError."""
    if arguments.profile is not None:
        profile = profile_named(arguments.profile)
        bootstrap, config = profile.bootstrap, profile.command_config
    elif any(getattr(arguments, name) not in (None, []) for name in instead):
        return
    else:
        bootstrap, config = (os.environ.get(name) or None for name in (BOOTSTRAP, COMMAND_CONFIG))
    arguments.bootstrap_server = arguments.bootstrap_server or bootstrap
    arguments.command_config = arguments.command_config or config


def complete_several(arguments: argparse.Namespace, instead: Sequence[str] = ()) -> None:
    """The same where several clusters may be named: profiles are read later, each for its cluster."""
    others = ("profile", *instead)
    if any(getattr(arguments, name) not in (None, []) for name in others) and not arguments.bootstrap_server:
        return
    bootstrap, config = (os.environ.get(name) or None for name in (BOOTSTRAP, COMMAND_CONFIG))
    arguments.bootstrap_server = arguments.bootstrap_server or ([bootstrap] if bootstrap else None)
    arguments.command_config = arguments.command_config or config


def profile_named(name: str) -> Profile:
    """Raises CommandError."""
    try:
        return read_profile(name)
    except BadSettings as error:
        raise CommandError(str(error)) from None


def settings_from(arguments: argparse.Namespace) -> Settings:
    """What the options amount to. Raises CommandError."""
    try:
        settings = read_settings(arguments.command_config, arguments.bootstrap_server)
    except BadSettings as error:
        missing = arguments.bootstrap_server is None and arguments.command_config is None
        hint = f" Give its address with -b HOST:PORT, or in ${BOOTSTRAP}." if missing else ""
        raise CommandError(f"{'No broker is named.' if missing else error}{hint}") from None
    if settings.ignored:
        unused = ", ".join(map(harmless, settings.ignored))
        print(f"{arguments.command_config}: not used here: {unused}.", file=sys.stderr)
    return with_limit(settings, arguments.timeout)
