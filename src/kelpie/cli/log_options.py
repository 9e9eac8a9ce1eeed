"""What users tell of logs: options that several commands have."""

import argparse
from typing import TYPE_CHECKING

from kelpie.cli.command import CommandError, option

if TYPE_CHECKING:
    from kelpie.evidence.logs.hints import Hints


def add_log_options(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "--time-zone ZONE",
        "of times in logs that name none: Europe/Berlin; if left out, what the logs betray, else UTC",
    )
    option(
        parser,
        "--log-layout FILES=PATTERN",
        "how lines of these logs begin, if Kelpie does not see it by itself: a regular expression with "
        "(?P<time>…), (?P<level>…), (?P<logger>…), (?P<message>…); docs/evidence.md tells more",
        action="append",
        default=[],
    )


def hints_of(arguments: argparse.Namespace) -> "Hints":
    """Raises CommandError."""
    from kelpie.evidence.logs.hints import Hints, parse_layout, zone_of  # noqa: PLC0415 - only logs need it.

    try:
        zone = zone_of(arguments.time_zone) if arguments.time_zone is not None else None
        return Hints(zone, tuple(map(parse_layout, arguments.log_layout)))
    except ValueError as error:
        raise CommandError(str(error)) from None
