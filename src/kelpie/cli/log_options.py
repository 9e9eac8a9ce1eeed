"""What users tell of logs: options that several commands have."""

import argparse

from kelpie.evidence.logs.hints import Hints, layout_of, zone_of


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
    """Raises ValueError."""
    zone = zone_of(arguments.time_zone) if arguments.time_zone is not None else None
    return Hints(zone, tuple(map(layout_of, arguments.log_layout)))
