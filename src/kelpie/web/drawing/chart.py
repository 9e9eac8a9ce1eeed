"""Values over time as a chart.

A chart works without JavaScript; `chart.js` adds the values under the pointer, and a choice of the time by
dragging. Of more values than it has room for, a chart shows the least and the greatest of each column, so
that no peak is lost.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple
from xml.etree.ElementTree import Element

from markupsafe import Markup

from kelpie.model.time import Instant
from kelpie.web.drawing.scale import Frame, duration_ticks, labels, number_ticks, short_number, time_ticks
from kelpie.web.drawing.svg import add, picture, place, text, written

WIDTH, HEIGHT = 560, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 10, 10, 26
_COLUMNS = 240
NUMBER, COUNT, DURATION = "number", "count", "ms"
"""Units. A count is a whole number."""


class Line(NamedTuple):
    """Values by time. None, or no finite number: not known then, and the line has a gap."""

    name: str
    times: Sequence[Instant]
    values: Sequence[float | None]


class Mark(NamedTuple):
    """Something that happened."""

    at: Instant
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    lines: Sequence[Line]
    unit: str = NUMBER
    steps: bool = False
    """A value holds until the next one."""
    marks: Sequence[Mark] = ()


Point = tuple[Instant, float]
Run = list[Point]


def draw(chart: Chart, frame: Frame, say: Callable[[float], str], summary: str) -> Markup:
    """`say`: how a value that is no plain number is written. `summary`: what a screen reader says."""
    runs = [[_thinned(run, frame) for run in _runs(line, frame, steps=chart.steps)] for line in chart.lines]
    greatest = max((value for of in runs for run in of for _, value in run), default=0.0)
    ticks = (
        duration_ticks(greatest)
        if chart.unit == DURATION
        else number_ticks(greatest, least_step=1 if chart.unit == COUNT else 0)
    )
    area = _Area(frame, ticks[-1])
    root = picture(WIDTH, HEIGHT, "chart", summary)
    root.set("data-from", str(frame.begin))
    root.set("data-to", str(frame.end))
    root.set("data-left", str(_LEFT))
    root.set("data-right", str(WIDTH - _RIGHT))
    root.set("data-unit", chart.unit)
    _axes(root, area, ticks, say if chart.unit == DURATION else short_number)
    for mark in chart.marks:
        if frame.has(mark.at):
            x = area.x(mark.at)
            stroke = add(root, "line", "mark", x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM, data_at=str(mark.at))
            stroke.set("data-text", mark.text)
    for number, (line, of) in enumerate(zip(chart.lines, runs, strict=True)):
        path = add(
            root, "path", f"line line-{number % 4}", d=" ".join(_path(area, run, chart.steps) for run in of)
        )
        path.set("data-name", line.name)
        path.set("data-points", json.dumps([[at, _short(value)] for run in of for at, value in run]))
        for run in of:
            if len(run) == 1:
                add(
                    root,
                    "circle",
                    f"point line-{number % 4}",
                    cx=area.x(run[0][0]),
                    cy=area.y(run[0][1]),
                    r=2,
                )
    return written(root)


class _Area(NamedTuple):
    frame: Frame
    greatest: float

    def x(self, at: Instant) -> float:
        return _LEFT + (at - self.frame.begin) / self.frame.span * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - value / self.greatest * (HEIGHT - _TOP - _BOTTOM)


def _axes(root: Element, area: _Area, ticks: Sequence[float], say: Callable[[float], str]) -> None:
    for value in ticks:
        y = area.y(value)
        add(root, "line", "grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y)
        text(root, (_LEFT - 6, y + 4), say(value), "of-value")
    ticks_of_time = time_ticks(area.frame)
    for tick in ticks_of_time:
        x = area.x(int(tick.value))
        add(root, "line", "grid", x1=x, x2=x, y1=HEIGHT - _BOTTOM, y2=HEIGHT - _BOTTOM + 4)
    for number, label in enumerate(labels(ticks_of_time, area.x, 0, WIDTH)):
        kind = f"of-time {label.kind}" + (" minor" if number % 2 else "")
        text(root, (label.x, HEIGHT - 8), label.text, kind)


def _runs(line: Line, frame: Frame, *, steps: bool) -> Iterator[Run]:
    """The values within the frame, and one on each side of it, cut at gaps."""
    run: Run = []
    before: Point | None = None
    for at, value in zip(line.times, line.values, strict=True):
        if value is None or not isfinite(value):
            if run:
                yield run
            run, before = [], None
            continue
        if at < frame.begin:
            before = (at, value)
            continue
        if before is not None:
            run.append((frame.begin, before[1] if steps else _between(before, (at, value), frame.begin)))
            before = None
        if at > frame.end:
            if run:
                run.append((frame.end, run[-1][1] if steps else _between(run[-1], (at, value), frame.end)))
            break
        run.append((at, value))
    if before is not None and steps:
        run.append((frame.begin, before[1]))
    if run:
        yield run


def _between(one: Point, other: Point, at: Instant) -> float:
    part = (at - one[0]) / max(1, other[0] - one[0])
    return one[1] + part * (other[1] - one[1])


def _thinned(run: Run, frame: Frame) -> Run:
    """Of each column the first, the least, the greatest and the last value, by time."""
    if len(run) <= 2 * _COLUMNS:
        return run
    columns: dict[int, Run] = {}
    for point in run:
        columns.setdefault((point[0] - frame.begin) * _COLUMNS // frame.span, []).append(point)
    kept: Run = []
    for column in columns.values():
        chosen = {column[0], min(column, key=_value), max(column, key=_value), column[-1]}
        kept += sorted(chosen)
    return kept


def _value(point: Point) -> float:
    return point[1]


def _path(area: _Area, run: Run, steps: bool) -> str:
    places = [(place(area.x(at)), place(area.y(value))) for at, value in run]
    words = [f"M{places[0][0]} {places[0][1]}"]
    for x, y in places[1:]:
        words.append(f"H{x}V{y}" if steps else f"L{x} {y}")
    if steps and run[-1][0] < area.frame.end:
        words.append(f"H{place(area.x(area.frame.end))}")
    return "".join(words)


def _short(value: float) -> float:
    return int(value) if value == int(value) else float(f"{value:.4g}")
