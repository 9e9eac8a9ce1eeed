"""Samples of counters to what was counted between scrapes, for many brokers and series at once.

The rules are those of `cluster.traffic`, which has them for the doctor: only growth tells something; two
scrapes of one broker are compared; if a series is gone or has become smaller, the broker was started again in
between, and the later scrape tells what was counted since then; a first scrape tells what was counted since
some unknown time. So what a scrape tells depends on it and on the one before, and on no other.

A label without a name (none at all, "" or `ambiguous`) is unattributed. Beside such a delta stand the groups
that the broker counted on the same partition meanwhile. One of them is *steady* if it was counted in the
spans before and after, too: a connection keeps its label, so all that this group fetched is under its name.
Of the last scrape of a day only the next day shows that (`midnight`): until then it is null.

All columns are numbers here: names are codes of dictionaries. Rows are sorted once, by series and scrape.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kelpie.evidence.dating import name_order
from kelpie.pipeline.tables import TABLES

AMBIGUOUS = "ambiguous"
"""What the plan `incarnation` writes where several groups are possible."""
NAMELESS = ("", AMBIGUOUS)
COLUMNS = ("broker", "at", "source", "topic", "partition", "group", "messages", "bytes", "entries")
"""Of `traffic_sample`, those that count."""
NAMES = ("broker", "source", "topic", "group")
_CODED = pa.dictionary(pa.int32(), pa.string())
TOLD = "is_told"
"""Whether the span that ends with this scrape was told before; then the scrape is there to compare with."""
AMOUNTS = ("messages", "bytes", "entries")
_KEPT = 2
"""Scrapes of each broker to go on from: with two, it is known what grew before."""
_LARGEST = 1 << 62
_SAMPLES = TABLES["traffic_sample"].schema
_BESIDE = TABLES["unattributed_traffic"].schema.field("beside").type.value_type

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Growth:
    """What was counted between scrapes."""

    counted: pa.Table
    """Rows of attributed_traffic: those with a group."""
    unattributed: pa.Table
    """Rows of unattributed_traffic."""
    rest: pa.Table
    """Samples to go on from; they have the column TOLD."""


def growth(samples: pa.Table, *, is_last: bool = True) -> Growth:
    """`samples`: COLUMNS and TOLD. `is_last`: no later scrapes follow; else the last one of each broker waits
    for the next call, where its successor shows what is steady.
    """
    samples = samples.combine_chunks()
    scrapes = _Scrapes(samples)
    waits = np.zeros(scrapes.count, bool) if is_last else scrapes.is_newest & ~scrapes.is_told
    series = _Series(samples, scrapes)
    series.compare()
    tells = series.has_grown & ~(scrapes.is_told | waits)[series.scrape]
    return Growth(
        series.counted(tells & series.has_name),
        series.unattributed(tells & ~series.has_name),
        _rest(samples, scrapes, keep=_KEPT if is_last else _KEPT + 1, told=~waits),
    )


def as_told(samples: pa.Table, *, told: bool) -> pa.Table:
    """Samples as `growth` wants them: names as dictionaries, an empty label where there is none."""
    columns = {name: samples[name] for name in COLUMNS}
    for name in NAMES:
        column = columns[name]
        if name == "group" and column.null_count:
            column = column.cast(pa.string()).fill_null("")
        columns[name] = column.cast(_CODED)
    return pa.table({**columns, TOLD: pa.array(np.full(samples.num_rows, told))})


def _rest(samples: pa.Table, scrapes: "_Scrapes", *, keep: int, told: Flags) -> pa.Table:
    """The samples of the last scrapes of each broker."""
    kept = scrapes.places_from_end < keep
    rest = samples.filter(pa.array(kept[scrapes.of_row]))
    place = rest.schema.get_field_index(TOLD)
    return rest.set_column(place, TOLD, pa.array(told[scrapes.of_row[kept[scrapes.of_row]]]))


class _Scrapes:
    """The scrapes that samples are of, numbered by broker, time and name."""

    def __init__(self, samples: pa.Table) -> None:
        broker, self.brokers = codes(samples["broker"])
        source, sources = codes(samples["source"])
        by_name = sorted(range(len(sources)), key=lambda place: name_order(sources[place] or ""))
        source_rank = np.empty(len(sources), np.int64)
        source_rank[by_name] = np.arange(len(sources))
        at = samples["at"].cast(pa.int64()).to_numpy()
        ranked = source_rank[source] if len(sources) else source
        # Samples of one scrape follow each other, so few rows need to be sorted.
        begins = np.ones(len(at), bool)
        begins[1:] = (broker[1:] != broker[:-1]) | (at[1:] != at[:-1]) | (source[1:] != source[:-1])
        heads = np.flatnonzero(begins)
        order = np.lexsort((ranked[heads], at[heads], broker[heads]))
        key = np.stack([broker[heads], at[heads], ranked[heads]])[:, order]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(is_new) - 1
        self.of_row: Numbers = np.repeat(number, np.diff(np.append(heads, len(at))))
        """The number of the scrape of each sample."""
        self.broker, self.at = key[0][is_new], key[1][is_new]
        self.count = len(self.at)
        self.is_told: Flags = np.zeros(self.count, bool)
        self.is_told[self.of_row] = samples[TOLD].to_numpy(zero_copy_only=False)
        same = self.broker[1:] == self.broker[:-1]
        self.has_earlier: Flags = np.append([False], same)[: self.count]
        self.is_newest: Flags = ~np.append(same, [False])[: self.count]
        ends = np.flatnonzero(self.is_newest)
        self.places_from_end: Numbers = ends[np.searchsorted(ends, np.arange(self.count))] - np.arange(
            self.count
        )


class _Series:
    """Samples in order of series and scrape."""

    def __init__(self, samples: pa.Table, scrapes: _Scrapes) -> None:
        self._scrapes = scrapes
        has_topic = samples["topic"].is_valid().to_numpy(zero_copy_only=False)
        rows = None if has_topic.all() else np.flatnonzero(has_topic)
        scrape = scrapes.of_row if rows is None else scrapes.of_row[rows]
        samples = samples if rows is None else samples.take(pa.array(rows))
        topic, self._topics = codes(samples["topic"])
        label, self._labels = codes(samples["group"])
        partition = samples["partition"].to_numpy().astype(np.int64)
        broker = scrapes.broker[scrape]
        sizes = (len(scrapes.brokers), len(self._topics), int(partition.max(initial=0)) + 1)
        self._places = combined((broker, topic, partition), sizes)
        number = combined(
            (self._places, label), (int(self._places.max(initial=0)) + 1, max(1, len(self._labels)))
        )
        order = _order(number, scrape, scrapes.count)
        self.scrape, self._number = scrape[order], number[order]
        values = [samples[name].to_numpy()[order] for name in AMOUNTS]
        keep = np.ones(len(order), bool)  # Where a scrape has a series twice, the later line counts.
        keep[:-1] = (self._number[1:] != self._number[:-1]) | (self.scrape[1:] != self.scrape[:-1])
        if not keep.all():
            order, self.scrape, self._number = order[keep], self.scrape[keep], self._number[keep]
            values = [each[keep] for each in values]
        self._values = values
        self._places, self._topic, self._partition = self._places[order], topic[order], partition[order]
        self._label = label[order]
        nameless = np.array([name in NAMELESS for name in self._labels], bool)
        self.has_name: Flags = ~nameless[self._label] if len(nameless) else np.zeros(0, bool)

    def compare(self) -> None:
        """Each sample with that of the scrape before."""
        scrapes, scrape = self._scrapes, self.scrape
        goes_on = np.zeros(len(scrape), bool)
        goes_on[1:] = (self._number[1:] == self._number[:-1]) & (scrape[1:] == scrape[:-1] + 1)
        differences = [np.diff(each, prepend=0) for each in self._values]
        falls = goes_on & ((differences[0] < 0) | (differences[1] < 0) | (differences[2] < 0))
        series = np.bincount(scrape, minlength=scrapes.count)
        kept = np.bincount(scrape[goes_on], minlength=scrapes.count)
        fell = np.bincount(scrape[falls], minlength=scrapes.count) > 0
        before = np.append([0], series[:-1])[: scrapes.count]
        is_named = np.array([bool(name) for name in scrapes.brokers], bool)[scrapes.broker]
        # Without a name, only a series that both have says that two scrapes are of one broker.
        self._has_earlier: Flags = scrapes.has_earlier & (is_named | (before > 0))
        self._restarted: Flags = self._has_earlier & ((kept < before) | fell)
        goes_on &= ~self._restarted[scrape]
        self._growth = [
            np.where(goes_on, difference, value)
            for difference, value in zip(differences, self._values, strict=True)
        ]
        self.has_grown: Flags = (self._growth[0] != 0) | (self._growth[1] != 0) | (self._growth[2] != 0)
        self._goes_on = goes_on

    def counted(self, rows: Flags) -> pa.Table:
        chosen = np.flatnonzero(rows)
        group = named(self._label[chosen], self._labels)
        return pa.table({**self._common(chosen), "group": group})

    def unattributed(self, rows: Flags) -> pa.Table:
        chosen = np.flatnonzero(rows)
        scrape = self.scrape[chosen]
        named_on = np.bincount(
            self._scrapes.broker[self.scrape[self.has_name]], minlength=len(self._scrapes.brokers)
        )
        return pa.table(
            {
                **self._common(chosen),
                "label": named(self._label[chosen], self._labels),
                "after_restart": pa.array(self._restarted[scrape]),
                "has_labels": pa.array(named_on[self._scrapes.broker[scrape]] > 0),
                "beside": self._beside(chosen),
            }
        )

    def _common(self, chosen: Numbers) -> dict[str, pa.Array]:
        scrapes, scrape = self._scrapes, self.scrape[chosen]
        began = scrapes.at[scrape - 1] if len(scrape) else scrape
        moment = _SAMPLES.field("at").type
        return {
            "broker": named(scrapes.broker[scrape], scrapes.brokers),
            "topic": named(self._topic[chosen], self._topics),
            "partition": pa.array(self._partition[chosen].astype(np.int32)),
            "began": pa.array(began, pa.int64(), mask=~self._has_earlier[scrape]).cast(moment),
            "ended": pa.array(scrapes.at[scrape]).cast(moment),
            **{name: pa.array(each[chosen]) for name, each in zip(AMOUNTS, self._growth, strict=True)},
        }

    def _beside(self, chosen: Numbers) -> pa.Array:
        """For each of these rows, the groups that were counted on its broker and partition meanwhile."""
        sizes = (int(self._places.max(initial=0)) + 1, self._scrapes.count)
        place = combined((self._places, self.scrape), sizes)
        others = np.flatnonzero(self.has_grown & self.has_name & np.isin(place, place[chosen]))
        others = others[np.argsort(place[others], kind="stable")]
        first = np.searchsorted(place[others], place[chosen], "left")
        last = np.searchsorted(place[others], place[chosen], "right")
        counts = last - first
        offsets = np.append([0], np.cumsum(counts))
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        listed = others[np.repeat(first, counts) + within]
        values = pa.StructArray.from_arrays(
            [
                named(self._label[listed], self._labels).cast(pa.string()),
                pa.array(self._growth[0][listed]),
                self._steady(listed),
            ],
            fields=list(_BESIDE),
        )
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)

    def _steady(self, rows: Numbers) -> pa.Array:
        """Whether a series has grown before and after, too. Null: before, and there is no scrape after."""
        before = np.maximum(rows - 1, 0)
        after = np.minimum(rows + 1, len(self.scrape) - 1)
        grew_before = self._goes_on[rows] & self.has_grown[before] & self._has_earlier[self.scrape[before]]
        grows_on = (after > rows) & self._goes_on[after] & self.has_grown[after]
        is_open = grew_before & self._scrapes.is_newest[self.scrape[rows]]
        return pa.array(grew_before & grows_on, mask=is_open)


def codes(column: pa.ChunkedArray | pa.Array) -> tuple[Numbers, list[Any]]:
    """A column as numbers, and the values that they stand for; −1 stands for null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # Of none or of several dictionaries.
        column = column.unify_dictionaries().combine_chunks() if column.num_chunks else column
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], pa.string()).dictionary_encode()
    numbers = column.indices.fill_null(-1) if column.null_count else column.indices
    return numbers.to_numpy(zero_copy_only=False).astype(np.int64), column.dictionary.to_pylist()


def named(numbers: Numbers, values: list[Any]) -> pa.DictionaryArray:
    """The reverse of `codes`."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(values, pa.string()))


def combined(parts: tuple[Numbers, ...], sizes: tuple[int, ...]) -> Numbers:
    """One number for each combination; in the order of the parts. `sizes`: how many values each has."""
    number, size = parts[0], sizes[0]
    for part, count in zip(parts[1:], sizes[1:], strict=True):
        if size * count >= _LARGEST:  # Too many to multiply: number those that there are.
            values, number = np.unique(number, return_inverse=True)
            size = len(values)
        number, size = number * count + part, size * count
    return number


def _order(number: Numbers, scrape: Numbers, scrapes: int) -> Numbers:
    if int(number.max(initial=0) + 1) * max(1, scrapes) < _LARGEST:
        return np.argsort(number * max(1, scrapes) + scrape, kind="stable")
    return np.lexsort((scrape, number))
