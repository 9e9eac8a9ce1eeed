"""Scrapes of brokers with KoP: traffic by topic, partition and group, and lines that break the format.

    kop_server_MESSAGE_OUT{cluster="test",group="billing",partition="2",topic="orders"} 1041

KoP writes names into labels as they are. A quote, a backslash or an end of line in the name of a group makes
lines that no reader of the format accepts. Such a series is read here all the same, with the name that the
group has, and it is returned as malformed, too: Prometheus drops the whole scrape because of it.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from kelpie.evidence.dating import name_order
from kelpie.evidence.scrapes import MalformedLine, Sample, read_scrape
from kelpie.model.time import Instant, plausible
from kelpie.observations import MalformedSeries, Observations, Scrape, TrafficSeries
from kelpie.observations.traffic import COUNTERS

_PREFIX = "kop_server_"
_NAMES = {f"{_PREFIX}{counter}": counter for counter in COUNTERS}
_BROKER = re.compile(r"(?<![a-z])(?:broker|node)[-_. ]?(\d{1,9})(?!\d)", re.I)
_UNESCAPED = re.compile(
    r"(?P<name>[a-zA-Z_:][\w:]*)\{(?P<labels>.*)\}\s+(?P<value>[^\s{}\"]+)(?:\s+(?P<at>\d{1,18}))?\s*",
    re.S | re.A,
)
_BEGINS = re.compile(r"[a-zA-Z_:][\w:]*\{", re.A)
_BETWEEN_LABELS = re.compile(r'",\s*(?=[a-zA-Z_]\w*=")', re.A)
_MOST_LINES = 16
"""A series is put together of at most so many lines."""
_LARGEST = 1 << 63

Row = TypeVar("Row", Scrape, TrafficSeries, MalformedSeries)


class Unescaped(NamedTuple):
    """A series that is not escaped, read all the same."""

    name: str
    labels: Mapping[str, str]
    value: str
    at: Instant | None


def read_unescaped(text: str) -> Unescaped | None:
    """A series whose labels are written as they are, ends of lines included. None: it cannot be read."""
    match = _UNESCAPED.fullmatch(text)
    if match is None:
        return None
    labels = {}
    for pair in _BETWEEN_LABELS.split(match["labels"].strip().removesuffix('"')):
        name, equals, value = pair.partition('="')
        if not equals:
            return None
        labels[name.strip()] = value
    at = plausible(int(match["at"])) if match["at"] else None
    return Unescaped(match["name"], labels, match["value"], at)


def broker_in(name: str) -> str:
    """The broker that the path of a file names, nearest to its end: "scrapes/broker-2/1.prom"."""
    numbers = _BROKER.findall(name)
    return f"broker {int(numbers[-1])}" if numbers else ""


def read_kop_scrape(lines: Iterable[str], name: str) -> Observations | None:
    """The rows of a scrape. None: there is nothing of KoP's in it.

    `name` is the file's. Times are those of the samples, where they have one.
    """
    reading = KopReading(name)
    for line in read_scrape(lines):
        reading.line(line)
    return reading.end()


class KopReading:
    """Takes the lines of a scrape one by one, for those who do more with them."""

    def __init__(self, name: str) -> None:
        self.observations = Observations()
        self.is_of_kop = False
        self._name = name
        self._broker = broker_in(name)
        self._scrapes: dict[str, Scrape] = {}
        """By broker: Prometheus can give the series of several at once."""
        self._open: list[MalformedLine] = []
        """Lines that may be one series."""

    def line(self, line: Sample | MalformedLine) -> None:
        if isinstance(line, Sample):
            self._sample(line)
        else:
            self._malformed(line)

    def end(self) -> Observations | None:
        """All rows. None: there is nothing of KoP's in the scrape."""
        self._end_of_lines()
        return self.observations if self.is_of_kop else None

    def _sample(self, sample: Sample) -> None:
        if not sample.name.startswith(_PREFIX):
            return
        self.is_of_kop = True
        broker = sample.labels.get("instance") or self._broker
        self._note_scrape(broker, sample.at)
        self._series(sample, broker)

    def _malformed(self, line: MalformedLine) -> None:
        begins = _BEGINS.match(line.text) is not None
        follows = bool(self._open) and line.line == self._open[-1].line + 1
        if begins or not follows or len(self._open) >= _MOST_LINES:
            self._end_of_lines()
        self._open.append(line)
        if read_unescaped(self._text) is not None:
            self._end_of_lines()

    def _end_of_lines(self) -> None:
        """What was put together is one malformed series."""
        if not self._open:
            return
        series, first = read_unescaped(self._text), self._open[0].line
        labels = series.labels if series is not None else {}
        broker = labels.get("instance") or self._broker
        at = series.at if series is not None else None
        self.observations.malformed.append(
            MalformedSeries(
                self._name, self._text, labels.get("group"), broker, at, source=f"{self._name}:{first}"
            )
        )
        if _PREFIX in self._text:
            self.is_of_kop = True
            self._note_scrape(broker, at)
        if series is not None:
            self._series(Sample(first, series.name, labels, _number(series.value), None, at), broker)
        self._open = []

    @property
    def _text(self) -> str:
        return "\n".join(line.text for line in self._open)

    def _note_scrape(self, broker: str, at: Instant | None) -> None:
        scrape = self._scrapes.get(broker)
        if scrape is None:
            scrape = self._scrapes[broker] = Scrape(broker, at, self._name)
            self.observations.scrapes.append(scrape)
        elif at is not None and (scrape.at is None or at > scrape.at):
            later = scrape._replace(at=at)
            self.observations.scrapes[self.observations.scrapes.index(scrape)] = later
            self._scrapes[broker] = later

    def _series(self, sample: Sample, broker: str) -> None:
        labels = sample.labels
        partition, topic, group = labels.get("partition", ""), labels.get("topic"), labels.get("group")
        if sample.name not in _NAMES or topic is None or not re.fullmatch(r"[0-9]{1,9}", partition):
            return
        if not 0 <= sample.value < _LARGEST:
            return
        self.observations.traffic.append(
            TrafficSeries(
                self._name,
                topic,
                int(partition),
                group,
                _NAMES[sample.name],
                int(sample.value),
                broker,
                sample.at,
                f"{self._name}:{sample.line}",
            )
        )
        if group:
            self.observations.known_groups.setdefault(group, f"labels in {self._name}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def settle_scrapes(scrapes: Sequence[tuple[Observations, Instant | None]]) -> Observations:
    """The rows of several scrapes, in the order in which these were made.

    Each comes with the time of its file, or None where file times do not tell. Without any time, the names
    of files order them. Where names do not tell the broker and there are several folders, a folder is one
    broker.
    """
    folders = {
        folder_of(scrape.source) for rows, _ in scrapes for scrape in rows.scrapes if not scrape.broker
    }
    settled = []
    for rows, at in scrapes:
        folder = folder_of(rows.scrapes[0].source) if len(folders) > 1 else ""
        settled.append(
            Observations(
                scrapes=[_completed(row, folder, at) for row in rows.scrapes],
                traffic=[_completed(row, folder, at) for row in rows.traffic],
                malformed=[_completed(row, folder, at) for row in rows.malformed],
                known_groups=rows.known_groups,
            )
        )
    return Observations().add(*sorted(settled, key=lambda rows: name_order(rows.scrapes[0].source)))


def folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def _completed(row: Row, broker: str, at: Instant | None) -> Row:
    return row._replace(broker=row.broker or broker, at=row.at if row.at is not None else at)
