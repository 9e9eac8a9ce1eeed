"""Options of `kelpie serve` for /metrics: names of which exporters, which groups, topics or partitions."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kelpie.cli.command import CommandError, option
from kelpie.model.quoting import harmless
from kelpie.model.selection import Selection

if TYPE_CHECKING:
    from kelpie.web.exposition import Limits
    from kelpie.web.watch import Watch

EXPORTERS = ("kelpie", "kafka-exporter", "kminion", "lag-exporter", "burrow")
KMINION = "kminion"
_PARTITION, _TOPIC = "partition", "topic"


def add_metrics_options(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("metrics")
    option(
        options,
        "--metrics NAMES",
        f"names that /metrics uses, one or several of {', '.join(EXPORTERS)}; %(default)s if left out. "
        "With burrow, its addresses below /v3/kafka are there, too",
        default=EXPORTERS[0],
    )
    option(
        options,
        "--metrics-groups GROUP",
        "only these groups have series of their own, by name or pattern; may be repeated. All if left out",
        action="append",
        default=[],
    )
    option(
        options,
        "--metrics-granularity WORD",
        "partition: each partition of a group has series; topic: each topic. %(default)s if left out",
        choices=(_PARTITION, _TOPIC),
        default=_PARTITION,
    )
    option(
        options,
        "--metrics-most NUMBER",
        "at most about so many samples of groups; those with findings come first. No limit if left out",
        type=_count,
    )
    option(
        options,
        "--otlp URL",
        "push the same numbers, under Kelpie's names, to an OpenTelemetry collector after each look, as in "
        "http://127.0.0.1:4318; OTEL_EXPORTER_OTLP_HEADERS counts",
    )


def otlp_from(arguments: argparse.Namespace, watches: "Sequence[Watch]", stack: ExitStack) -> None:
    """Starts the push to a collector, if there is one. Raises CommandError."""
    url: str | None = arguments.otlp
    if url is None:
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise CommandError("--otlp: it is no address of the kind http://HOST:4318.")
    try:
        from kelpie.web.otlp import OtlpPush  # noqa: PLC0415 - needs the extra otlp.
    except ImportError as error:
        raise CommandError(
            f"--otlp needs OpenTelemetry: pip install 'kelpie-kafka[otlp]'. ({error})"
        ) from None

    def say(text: str) -> None:
        print(f"kelpie serve: {harmless(text)}", file=sys.stderr, flush=True)

    live = [watch for watch in watches if not watch.is_of_tables]
    stack.enter_context(OtlpPush(live, url, limits_from(arguments), say=say))


def exporters_from(arguments: argparse.Namespace) -> list[str]:
    """Raises CommandError."""
    text: str = arguments.metrics
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in EXPORTERS]
    if unknown or not names:
        raise CommandError(f"--metrics {text!r}: there are {', '.join(EXPORTERS)}, separated by commas.")
    return list(dict.fromkeys(names))


def limits_from(arguments: argparse.Namespace) -> "Limits":
    """Raises CommandError."""
    from kelpie.web.exposition import Limits  # noqa: PLC0415 - only pages need it.

    if "" in arguments.metrics_groups:
        raise CommandError("An empty name is no name for a group.")
    groups = Selection(arguments.metrics_groups or None)
    return Limits(groups, arguments.metrics_granularity == _PARTITION, arguments.metrics_most)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not int(text[:12]) > 0 or len(text) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of samples above 0")
    return int(text)
