"""What a group fetched, and how it is known that it was this one: from scrapes of brokers, or from tables."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kelpie.doctor.attribution import short
from kelpie.doctor.overview import GroupOverview
from kelpie.model.time import Instant
from kelpie.web import words
from kelpie.web.charts import Drawn
from kelpie.web.drawing.chart import Chart, Line, draw
from kelpie.web.drawing.scale import Frame
from kelpie.web.language import N_, gettext
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch

COUNTED = "counted"
MEANINGS = {
    COUNTED: N_("The broker counted it to this group."),
    "exact": N_("The broker did not name the group, and only this one can have fetched it."),
    "apportioned": N_("An estimate, by committed offsets: several groups can have fetched it."),
    "derived": N_("From survey to survey, by committed offsets and the size of the log between them."),
}
"""How it is known."""


class Fetched(NamedTuple):
    """In one step of time; None: in all that scrapes tell of."""

    at: Instant | None
    how: str
    topic: str
    messages: int
    bytes: int


class Amounts(NamedTuple):
    topic: str
    how: str
    messages: int
    bytes: int


def fetched(watch: Watch, look: Snapshot, row: GroupOverview, frame: Frame | None) -> list[Fetched]:
    """What tables tell of this time; without tables, what scrapes tell. Empty: nobody counted anything."""
    if watch.tables is not None and frame is not None:
        rows = watch.tables.traffic_of(row.group, frame)
        return [
            Fetched(each.ended, each.how, each.topic, each.messages or 0, each.bytes or 0) for each in rows
        ]
    return _of_scrapes(look, row.group)


def _of_scrapes(look: Snapshot, group: str) -> list[Fetched]:
    found = []
    for span in look.diagnosis.cluster.traffic_history.spans:
        for series in span.grown_series.get(group, ()):
            amount = span.growth[series]
            at = span.last.scrape.at
            found.append(Fetched(at, COUNTED, short(series.topic), amount.messages, amount.bytes))
    return found


def by_topic(rows: Iterable[Fetched]) -> list[Amounts]:
    """Sums, by topic and by how they are known."""
    sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        total = sums[row.topic, row.how]
        total[0] += row.messages
        total[1] += row.bytes
    return [Amounts(topic, how, *total) for (topic, how), total in sorted(sums.items())]


def chart(rows: Sequence[Fetched], frame: Frame) -> Drawn | None:
    """Messages by time, a line for each way in which they are known. None: there are no two times."""
    sums: defaultdict[str, defaultdict[Instant, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row.at is not None:
            sums[row.how][row.at] += row.messages
    if len({at for of in sums.values() for at in of}) < 2:
        return None
    lines = [
        Line(words.word(how), sorted(of), [of[at] for at in sorted(of)]) for how, of in sorted(sums.items())
    ]
    title = gettext("Messages fetched")
    total = sum(row.messages for row in rows)
    summary = gettext("%(title)s: %(count)s together") % {"title": title, "count": words.number(total)}
    names = tuple(line.name for line in lines) if len(lines) > 1 else ()
    return Drawn(title, draw(Chart(title, lines), frame, words.span, summary), words.number(total), names)
