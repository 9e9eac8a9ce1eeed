"""Traffic by group, from scrapes of brokers with KoP: what was counted, from when to when.

Only growth tells something. A counter never ends while its broker runs: after a repair, the series without a
group stays in every scrape with its old value; after a move of the partition, so do the old broker's series.
So two scrapes of one broker are compared:

- a series that has grown, or that is new, was counted between them;
- if a series is gone, or has become smaller, the broker was started again in between (or the scrapes are of
  two brokers): the later scrape tells what was counted since then;
- a first scrape tells what was counted since its broker was started, whenever that was.

KoP counts groups only if kopEnableGroupLevelConsumerMetrics is true, and it is false by default: then no
series has a label `group`. An empty label means that the group was not known. Prometheus drops empty labels,
so beside series with the label, one without it means the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from kelpie.attribution.counters import UNKNOWN, Amount, Series
from kelpie.observations import Scrape, TrafficSeries
from kelpie.observations.traffic import BYTES, ENTRIES, MESSAGES

NOTHING = Amount(0, 0, 0)


@dataclass(frozen=True, slots=True)
class CountedScrape:
    """What one scrape shows."""

    scrape: Scrape
    amounts: Mapping[Series, Amount]
    rows: Mapping[Series, TrafficSeries]
    """The line of each series, to quote."""


@dataclass(frozen=True, eq=False)
class Span:
    """What one broker counted from one scrape to the next; without a first one, since the broker's start."""

    broker: str
    first: CountedScrape | None
    last: CountedScrape
    after_restart: bool = False
    """The broker was started again after a scrape that came before."""

    @cached_property
    def growth(self) -> dict[Series, Amount]:
        """By series, without those that have not grown."""
        grown = {}
        for series, amount in self.last.amounts.items():
            before = self.first.amounts.get(series, NOTHING) if self.first is not None else NOTHING
            difference = Amount(*(now - then for now, then in zip(amount, before, strict=True)))
            if any(difference):
                grown[series] = difference
        return grown

    @cached_property
    def grown_series(self) -> dict[str, list[Series]]:
        """By group: the series that have grown, in order."""
        by_group: defaultdict[str, list[Series]] = defaultdict(list)
        for series in sorted(self.growth):
            by_group[series.group].append(series)
        return dict(by_group)


@dataclass(frozen=True)
class TrafficHistory:
    """All scrapes of all brokers."""

    scrapes: tuple[CountedScrape, ...]
    has_mappings: bool = False
    """Whether ZooKeeper maps clients to groups: then KoP counts groups, or has done so."""

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Of all brokers; those of one broker in order of time."""
        by_broker: defaultdict[str, list[CountedScrape]] = defaultdict(list)
        for counted in self.scrapes:
            by_broker[counted.scrape.broker].append(counted)
        return tuple(span for broker, scrapes in by_broker.items() for span in _spans(broker, scrapes))

    @cached_property
    def newest(self) -> tuple[Span, ...]:
        """The last span of each broker."""
        return tuple({span.broker: span for span in self.spans}.values())

    @cached_property
    def restarted(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.after_restart)

    def counts_groups(self, broker: str) -> bool | None:
        """Whether the broker labels traffic with groups. None: its scrapes do not tell."""
        labels = self._labels.get(broker, set())
        if labels - {None}:
            return True
        everywhere = set().union(*self._labels.values())
        if not everywhere - {None}:
            return None if self.has_mappings and everywhere else False
        # Where one broker's empty labels are seen, they would be seen of this broker, too.
        return UNKNOWN not in everywhere

    @cached_property
    def _labels(self) -> dict[str, set[str | None]]:
        labels: defaultdict[str, set[str | None]] = defaultdict(set)
        for counted in self.scrapes:
            labels[counted.scrape.broker] |= {row.group for row in counted.rows.values()}
        return labels

    @cached_property
    def labelled(self) -> dict[str, set[Series]]:
        """By group: all series that any scrape has of it."""
        by_group: defaultdict[str, set[Series]] = defaultdict(set)
        for counted in self.scrapes:
            for series in counted.amounts:
                if series.group:
                    by_group[series.group].add(series)
        return by_group


def traffic_history(
    scrapes: Iterable[Scrape], rows: Iterable[TrafficSeries], *, has_mappings: bool = False
) -> TrafficHistory:
    """Both in order of time."""
    by_scrape: defaultdict[tuple[str, str], list[TrafficSeries]] = defaultdict(list)
    for row in rows:
        by_scrape[row.scrape, row.broker].append(row)
    counted = [_counted(scrape, by_scrape[scrape.source, scrape.broker]) for scrape in scrapes]
    return TrafficHistory(tuple(counted), has_mappings)


def _counted(scrape: Scrape, rows: Iterable[TrafficSeries]) -> CountedScrape:
    values: defaultdict[Series, dict[str, int]] = defaultdict(dict)
    quoted: dict[Series, TrafficSeries] = {}
    for row in rows:
        series = Series(row.topic, row.partition, row.group or UNKNOWN)
        values[series][row.counter] = row.value
        if row.counter == MESSAGES or series not in quoted:
            quoted[series] = row
    amounts = {
        series: Amount(counters.get(MESSAGES, 0), counters.get(BYTES, 0), counters.get(ENTRIES, 0))
        for series, counters in values.items()
    }
    return CountedScrape(scrape, amounts, quoted)


def _spans(broker: str, scrapes: Sequence[CountedScrape]) -> Iterator[Span]:
    """A first scrape is a span of its own if no other one goes on from it, or if the broker was restarted."""
    for place, counted in enumerate(scrapes):
        before = scrapes[place - 1] if place else None
        after = scrapes[place + 1] if place + 1 < len(scrapes) else None
        if before is not None and _goes_on(before, counted):
            yield Span(broker, before, counted)
        elif before is not None or after is None or not _goes_on(counted, after):
            yield Span(broker, None, counted, after_restart=before is not None)


def _goes_on(earlier: CountedScrape, later: CountedScrape) -> bool:
    """Whether both are of one broker that was not started again in between."""
    for series, amount in earlier.amounts.items():
        now = later.amounts.get(series)
        if now is None or any(value < before for value, before in zip(now, amount, strict=True)):
            return False
    # Without a name, only a series that both have says that they are of one broker.
    return bool(earlier.scrape.broker) or bool(earlier.amounts)


def total(amounts: Iterable[Amount]) -> Amount:
    return reduce(Amount.plus, amounts, NOTHING)
