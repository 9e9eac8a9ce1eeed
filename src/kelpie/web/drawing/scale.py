"""Where ticks of axes are: round numbers, and round times in UTC."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from math import ceil, floor, log10
from typing import NamedTuple

from kelpie.model.time import Instant, utc

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(SECOND * each for each in (1, 2, 5, 10, 15, 30)),
    *(MINUTE * each for each in (1, 2, 5, 10, 15, 30)),
    *(HOUR * each for each in (1, 2, 3, 6, 12)),
    *(DAY * each for each in (1, 2, 5, 10)),
)
_MONTH_DAYS = 31
_NOTHING = 1e-9


class Frame(NamedTuple):
    """From when to when a picture goes."""

    begin: Instant
    end: Instant

    @property
    def span(self) -> int:
        return max(1, self.end - self.begin)

    def has(self, at: Instant) -> bool:
        return self.begin <= at <= self.end


class Tick(NamedTuple):
    value: float
    text: str


def time_ticks(frame: Frame, most: int = 7) -> list[Tick]:
    """At most so many. The first one, and each on which a day begins, has its date."""
    step = next((each for each in _STEPS if frame.span / each <= most), None)
    times = _months(frame, most) if step is None else _multiples(frame, step)
    ticks, day = [], ""
    for at in times:
        moment = utc(at)
        date = f"{moment:%Y-%m-%d}" if step is None or step >= DAY else f"{moment:%m-%d}"
        clock = (
            ""
            if step is None or step >= DAY
            else f"{moment:%H:%M:%S}"
            if step < MINUTE
            else f"{moment:%H:%M}"
        )
        ticks.append(Tick(at, clock if clock and date == day else f"{date} {clock}".strip()))
        day = date
    return ticks


class Label(NamedTuple):
    x: float
    text: str
    kind: str
    """Empty: its middle is at x; first or last: its beginning or its end."""


_SIGN = 7.0
"""Roughly, the width of a sign of an axis."""


def labels(
    ticks: Sequence[Tick], place: Callable[[Instant], float], left: float, right: float
) -> list[Label]:
    """As many labels as fit beside each other between two edges."""
    placed: list[Label] = []
    free = left
    for tick in ticks:
        x, width = place(int(tick.value)), len(tick.text) * _SIGN
        begin = x - width / 2
        kind = "first" if begin < left else "last" if begin + width > right else ""
        begin = x if kind == "first" else x - width if kind == "last" else begin
        if begin >= free:
            placed.append(Label(x, tick.text, kind))
            free = begin + width + _SIGN
    return placed


def _multiples(frame: Frame, step: int) -> Sequence[Instant]:
    return range(ceil(frame.begin / step) * step, frame.end + 1, step)


def _months(frame: Frame, most: int) -> list[Instant]:
    every = ceil(frame.span / (_MONTH_DAYS * DAY) / most)
    month = utc(frame.begin).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    times: list[Instant] = []
    while (at := int(month.timestamp() * 1000)) <= frame.end:
        if at >= frame.begin and (month.year * 12 + month.month - 1) % every == 0:
            times.append(at)
        month = (month + timedelta(days=32)).replace(day=1)
    return times


def number_ticks(greatest: float, most: int = 4, least_step: float = 0) -> list[float]:
    """From 0 to the greatest value, or beyond it: steps are 1, 2 or 5 times a power of ten."""
    if greatest < _NOTHING:
        return [0.0, 1.0]
    rough = max(greatest / most, least_step)
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    return [step * number for number in range(ceil(greatest / step - 1e-9) + 1)]


def duration_ticks(greatest_ms: float, most: int = 4) -> list[float]:
    """The same of durations: steps are round in seconds, minutes, hours or days."""
    if greatest_ms < most * SECOND:
        return number_ticks(greatest_ms, most)
    step = next((each for each in _STEPS if greatest_ms / each <= most), 0)
    step = step or ceil(greatest_ms / most / DAY) * DAY
    return [float(step * number) for number in range(ceil(greatest_ms / step) + 1)]


def short_number(value: float) -> str:
    """For an axis: "250", "1.5k", "20M"."""
    for least, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= least:
            return f"{value / least:.3g}{sign}"
    return f"{value:.3g}"
