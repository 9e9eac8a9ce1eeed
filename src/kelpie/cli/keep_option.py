"""--keep: for how long tables keep their rows."""

import argparse
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from kelpie.pipeline.retention.keep import LAYERS, Keep

_TIME = re.compile(r"(\d{1,5})\s*([dwy])", re.IGNORECASE)
_DAYS = {"d": 1, "w": 7, "y": 365}
_FORMS = "write 90d, 12w or 2y, for all tables or as bronze=30d for those of one layer"


def add_keep_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        type=_kept,
        metavar="[LAYER=]TIME",
        help="rows that are older go, by their own time: 90d, 12w, 2y; bronze=30d for the tables of a layer "
        "(bronze, silver, gold), as often as there are layers; all rows stay if left out",
    )


def keep_of(arguments: argparse.Namespace) -> Keep:
    return Keep(_by_layer(arguments.keep))


def _by_layer(told: Iterable[Mapping[str, timedelta]]) -> dict[str, timedelta]:
    """A time for one layer counts more than a time for all layers."""
    each = sorted(told, key=len, reverse=True)
    return {layer: time for some in each for layer, time in some.items()}


def _kept(text: str) -> dict[str, timedelta]:
    layer, _, time = text.rpartition("=")
    match = _TIME.fullmatch(time.strip())
    days = int(match[1]) * _DAYS[match[2].lower()] if match is not None else 0
    if not 0 < days <= 36_500 or layer not in ("", *LAYERS):
        raise argparse.ArgumentTypeError(f"{text!r} says not for how long: {_FORMS}")
    return dict.fromkeys([layer] if layer else LAYERS, timedelta(days=days))
