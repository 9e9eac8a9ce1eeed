"""The charts of a group's history, and the same in numbers."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from kelpie.doctor.group_history import GroupHistory, Rebalance, Value
from kelpie.doctor.rendering.json import time_of
from kelpie.model.time import Instant
from kelpie.web import words
from kelpie.web.drawing.chart import COUNT, DURATION, NUMBER, Chart, Line, Mark, draw
from kelpie.web.drawing.scale import Frame
from kelpie.web.language import gettext

_ROWS = 24
_Say = Callable[[float | None], str]


class Drawn(NamedTuple):
    title: str
    picture: Markup
    last: str
    """The last value, in words."""
    lines: tuple[str, ...] = ()
    """What each line is, where there are several."""


def whole_of(history: GroupHistory, end: Instant) -> Frame | None:
    """From the first that is known until now. None: nothing is known."""
    begin = history.begin
    return None if begin is None else Frame(min(begin, end - 1000), max(end, history.end or end))


def joined(early: GroupHistory, late: GroupHistory) -> GroupHistory:
    """Both, where `late` begins later and then counts. Rebalances: where `early` has details, it counts."""
    return GroupHistory(
        *(
            _joined(early.lag, late.lag),
            _joined(early.lag_ms, late.lag_ms),
            _joined(early.records, late.records),
            _joined(early.commits, late.commits),
            _joined(early.members, late.members),
        ),
        rebalances=_rebalances(late.rebalances, early.rebalances),
        departures=early.departures or late.departures,
    )


def _joined(early: Sequence[Value], late: Sequence[Value]) -> list[Value]:
    begin = late[0].at if late else None
    return [*(value for value in early if begin is None or value.at < begin), *late]


def _rebalances(counted: Sequence[Rebalance], told: Sequence[Rebalance]) -> list[Rebalance]:
    begin = told[0].at if told else None
    return [*(each for each in counted if begin is None or each.at < begin), *told]


def charts(history: GroupHistory, frame: Frame) -> list[Drawn]:
    """Those of which something is known: one value is no chart."""
    marks = [Mark(each.at, rebalance_in_words(each)) for each in history.rebalances]
    rows: Sequence[tuple[str, Sequence[Value], str, _Say, bool]] = (
        (gettext("Lag, in records"), history.lag, COUNT, words.number, False),
        (gettext("Lag in time"), history.lag_ms, DURATION, words.span, False),
        (gettext("Records read, per second"), history.records, NUMBER, words.rate, False),
        (gettext("Commits, per minute"), history.commits, NUMBER, words.rate, False),
        (gettext("Members"), history.members, COUNT, words.number, True),
    )
    drawn = []
    for title, values, unit, say, steps in rows:
        if len(values) > 1:
            line = Line(title, [value.at for value in values], [value.value for value in values])
            chart = Chart(title, [line], unit, steps, marks)
            picture = draw(chart, frame, words.span, _summary(title, values, frame, say))
            drawn.append(Drawn(title, picture, say(values[-1].value)))
    return drawn


def rebalance_in_words(each: Rebalance) -> str:
    parts = [
        gettext("Rebalance")
        if each.generation is None
        else gettext("Rebalance to generation %(number)s") % {"number": each.generation}
    ]
    if each.cause:
        parts.append(words.word(each.cause))
    if each.reason:
        parts.append(each.reason)
    return ": ".join(parts)


def _summary(title: str, values: Sequence[Value], frame: Frame, say: _Say) -> str:
    within = [value.value for value in values if frame.has(value.at)]
    if not within:
        return gettext("%(title)s: no value in this time") % {"title": title}
    text = gettext("%(title)s: from %(least)s to %(greatest)s, at the end %(last)s")
    said = {"least": say(min(within)), "greatest": say(max(within)), "last": say(within[-1])}
    return text % {"title": title, **said}


def in_numbers(history: GroupHistory, frame: Frame) -> list[dict[str, Any]]:
    """A few rows for a table: of each part of the time the last value, or the number of rebalances."""
    step = max(1000, frame.span // _ROWS)
    rows = []
    for end in range(frame.begin + step, frame.end + 1, step):
        part = Frame(end - step + 1, end)
        rows.append(
            {
                "at": end,
                "lag": _last_in(history.lag, part),
                "lag_ms": _last_in(history.lag_ms, part),
                "records": _last_in(history.records, part),
                "commits": _last_in(history.commits, part),
                "members": _last_in(history.members, part),
                "rebalances": sum(part.has(each.at) for each in history.rebalances),
            }
        )
    return [row for row in rows if row["rebalances"] or any(row[name] is not None for name in _MEASURES)]


_MEASURES = ("lag", "lag_ms", "records", "commits", "members")


def _last_in(values: Sequence[Value], part: Frame) -> float | None:
    place = bisect_right(values, part.end, key=lambda value: value.at)
    return values[place - 1].value if place and part.has(values[place - 1].at) else None


def as_data(history: GroupHistory, frame: Frame) -> dict[str, Any]:
    def series(values: Sequence[Value]) -> list[list[Any]]:
        return [[time_of(value.at), value.value] for value in values if frame.has(value.at)]

    return {
        "from": time_of(frame.begin),
        "to": time_of(frame.end),
        "lag": series(history.lag),
        "lag_ms": series(history.lag_ms),
        "records_per_second": series(history.records),
        "commits_per_minute": series(history.commits),
        "members": series(history.members),
        "rebalances": [_rebalance_as_data(each) for each in history.rebalances if frame.has(each.at)],
        "departures": [
            {**each._asdict(), "at": time_of(each.at)} for each in history.departures if frame.has(each.at)
        ],
    }


def _rebalance_as_data(each: Rebalance) -> dict[str, Any]:
    return {
        "at": time_of(each.at),
        "generation": each.generation,
        "members": each.members,
        "joined": list(each.joined),
        "left": list(each.left),
        "cause": each.cause or None,
        "reason": each.reason or None,
        "duration_ms": each.duration_ms,
        "source": each.source or None,
    }
