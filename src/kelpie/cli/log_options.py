"""What users tell of logs: options that several commands have."""

import argparse

from kelpie.cli.command import CommandError
from kelpie.evidence.logs.hints import Hints, parse_layout, zone_of


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="of times in logs that name none: Europe/Berlin; if left out, what the logs betray, else UTC",
    )
    parser.add_argument(
        "--log-layout",
        action="append",
        default=[],
        metavar="FILES=PATTERN",
        help="how lines of these logs begin, if Kelpie does not see it by itself: a regular expression with "
        "(?P<time>…), (?P<level>…), (?P<logger>…), (?P<message>…); docs/evidence.md tells more",
    )


def hints_of(arguments: argparse.Namespace) -> Hints:
    """Raises CommandError."""
    try:
        zone = zone_of(arguments.time_zone) if arguments.time_zone is not None else None
        return Hints(zone, tuple(map(parse_layout, arguments.log_layout)))
    except ValueError as error:
        raise CommandError(str(error)) from None
