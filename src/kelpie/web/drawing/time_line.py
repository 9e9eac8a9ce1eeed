"""What lasted from when to when, as bars one below the other."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from kelpie.model.time import Instant
from kelpie.web.drawing.scale import Frame, labels, time_ticks
from kelpie.web.drawing.svg import add, picture, text, written

WIDTH = 720
_EDGE, _ROW, _AXIS, _BAR = 6, 36, 26, 10
_LEAST_BAR = 3


class Bar(NamedTuple):
    name: str
    kind: str
    """Its class: how bad it was."""
    begin: Instant | None
    """None: before all that is known."""
    end: Instant | None
    """None: it goes on."""


def time_line(bars: Sequence[Bar], frame: Frame) -> Markup:
    """The page has the same as a list, so a screen reader does not need the picture."""
    height = _ROW * len(bars) + _AXIS
    root = picture(WIDTH, height, "time-line")

    def x(at: Instant) -> float:
        within = min(max(at, frame.begin), frame.end)
        return _EDGE + (within - frame.begin) / frame.span * (WIDTH - 2 * _EDGE)

    ticks = time_ticks(frame)
    for tick in ticks:
        place = x(int(tick.value))
        add(root, "line", "grid", x1=place, x2=place, y1=0, y2=height - _AXIS + 4)
    for number, label in enumerate(labels(ticks, x, _EDGE, WIDTH - _EDGE)):
        kind = f"of-time {label.kind}" + (" minor" if number % 2 else "")
        text(root, (label.x, height - 8), label.text, kind)
    for number, bar in enumerate(bars):
        top = number * _ROW
        text(root, (_EDGE, top + 16), bar.name, "of-bar")
        begin = _EDGE if bar.begin is None else x(bar.begin)
        end = WIDTH - _EDGE if bar.end is None else x(bar.end)
        begin = min(begin, WIDTH - _EDGE - _LEAST_BAR)
        width = max(_LEAST_BAR, end - begin)
        kind = f"bar {bar.kind}" + (" open" if bar.end is None else "")
        add(root, "rect", kind, x=begin, y=top + 21, width=width, height=_BAR)
    return written(root)
