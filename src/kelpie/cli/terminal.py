"""What the terminal can show: its width, and whether it has colours."""

import os
import sys
from typing import TextIO

from kelpie.model.cells import fill

_USUAL_WIDTH = 80
_LEAST_WIDTH, _LARGEST_WIDTH = 40, 120
"""Longer lines are hard to read, however wide the terminal is."""


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Columns, for standard output or this stream. None: it is no terminal, and $COLUMNS does not say."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    to = stream or sys.stdout
    if not _is_terminal(to):
        return None
    try:
        return os.get_terminal_size(to.fileno()).columns or None
    except (OSError, ValueError):
        return None


def text_width(stream: TextIO | None = None) -> int:
    """How wide sentences are."""
    return max(_LEAST_WIDTH, min(terminal_width(stream) or _USUAL_WIDTH, _LARGEST_WIDTH))


def has_colour(stream: TextIO | None = None) -> bool:
    """As https://no-color.org and https://force-color.org say; NO_COLOR counts first."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return rewrites(stream or sys.stdout)


def rewrites(stream: TextIO) -> bool:
    """Whether it is a terminal that obeys escape sequences."""
    return _is_terminal(stream) and os.environ.get("TERM") != "dumb"


def folded(text: str, label: str, stream: TextIO | None = None) -> str:
    """A message behind its label, for standard error or this stream. Folded on a terminal; else whole, so
    that programs find it in one line.

    Lines that begin with two spaces are quotations and stay as they are.
    """
    width = terminal_width(stream or sys.stderr)
    first, *others = text.split("\n")
    if width is None:
        return "\n".join([label + first, *others])
    width = max(_LEAST_WIDTH, min(width, _LARGEST_WIDTH))
    indent = " " * min(len(label), _LEAST_WIDTH // 2)
    lines = [fill(first, width, label, indent)]
    lines += [line if line.startswith("  ") else fill(line, width, indent, indent) for line in others]
    return "\n".join(lines)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # It is closed.
        return False
