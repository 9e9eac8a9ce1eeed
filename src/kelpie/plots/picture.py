"""What all pictures share: their style, and the file that a picture becomes.

The same numbers give the same SVG: identifiers inside it have a fixed salt, it has no date, and letters stay
letters, so that it does not depend on the fonts of the machine that drew it. No window system and no global
state of matplotlib's is touched.
"""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

_PIXELS_PER_INCH = 150

in_style = rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "kelpie"})
"""Decorates functions that draw or write."""


@in_style
def new_figure(width_inches: float, height_inches: float) -> Figure:
    return Figure(figsize=(width_inches, height_inches), facecolor="white", layout="constrained")


@in_style
def write_picture(figure: Figure, path: Path) -> None:
    """As SVG or PNG, by the suffix of `path`. Raises OSError."""
    kind = path.suffix.lower().lstrip(".")
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(path, format=kind, dpi=_PIXELS_PER_INCH, metadata=metadata)
