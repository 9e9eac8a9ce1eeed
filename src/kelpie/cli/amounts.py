"""Times and sizes, as people write them."""

import argparse
import math
import re

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def seconds(text: str, most: float = 3600.0) -> float:
    """A plain number of seconds, above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return number


def duration(text: str) -> float:
    """Seconds, of "30s", "5m", "1h", "2d", or a plain number."""
    match = _DURATION.fullmatch(text.strip().lower())
    number = float(match[1]) * _SECONDS[match[2] or "s"] if match is not None else 0.0
    if not 0 < number <= 366 * 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 30s, 5m, 2h or 1d")
    return number


def size(text: str) -> int:
    """Bytes, of "500MB", "1GB", "64KiB", or a plain number."""
    match = _SIZE.fullmatch(text.strip())
    number = 0
    if match is not None:
        number = int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()])
    if not 0 < number < 2**62:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes: write 500MB or 1GB")
    return number
