"""What exporters share: families of metrics, labels, and the text of samples.

There may be a million samples. So the text of labels is made once for a group and once for a partition, and
put together for each sample, fastest where samples of one family and group come as a column; `pairs` has the
same labels for those that send no text (OpenTelemetry).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.model.prometheus_text import escaped

GAUGE, COUNTER = "gauge", "counter"


@dataclass(frozen=True, eq=False, slots=True)
class Family:
    """Compared by identity: each is declared once."""

    name: str
    help: str
    kind: str = GAUGE


class Labels(NamedTuple):
    text: str
    """As Prometheus reads them, without braces."""
    pairs: tuple[tuple[str, str], ...]

    def also(self, other: "Labels") -> "Labels":
        if not self.text:
            return other
        return Labels(f"{self.text},{other.text}", self.pairs + other.pairs)


NO_LABELS = Labels("", ())
Row = tuple[Family, Labels, Labels, float]
"""Two parts of the labels: those of a cluster or group, and those of what it is about there."""
Lines = defaultdict[Family, list[str]]


class Column(NamedTuple):
    """Samples of one family and group: one for each of these places."""

    family: Family
    of: Labels
    places: Sequence[Labels]
    values: Sequence[float]


def rows_of(samples: "Iterable[Row | Column]") -> Iterator[Row]:
    """The same, one by one."""
    for each in samples:
        if isinstance(each, Column):
            family, of, places, values = each
            yield from zip(repeat(family), repeat(of), places, values, strict=False)
        else:
            yield each


def labels(**named: object) -> Labels:
    pairs = tuple((name, str(value)) for name, value in named.items())
    return Labels(",".join([f'{name}="{escaped(value)}"' for name, value in pairs]), pairs)


class Places(dict[TopicPartition, Labels]):
    """The labels of a partition, made when they are first needed."""

    def __init__(self, topic: str = "topic", partition: str = "partition") -> None:
        """Names of the labels."""
        super().__init__()
        self._topic = topic
        self._partition = partition

    def __missing__(self, name: TopicPartition) -> Labels:
        made = self[name] = labels(**{self._topic: name.topic, self._partition: name.partition})
        return made


class Each(dict[object, Labels]):
    """One label, by its value; made when it is first needed."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __missing__(self, value: object) -> Labels:
        made = self[value] = labels(**{self._name: value})
        return made


def families_in(holder: type) -> list[Family]:
    """Those that a class declares, in its order."""
    return [value for value in vars(holder).values() if isinstance(value, Family)]


def add_lines(lines: Lines, samples: Iterable[Row | Column]) -> int:
    """Adds the text of these samples. Returns how many there were."""
    count = 0
    for each in samples:
        if isinstance(each, Column):
            if each.values:
                lines[each.family].append(_text(each))
                count += len(each.values)
            continue
        family, of, place, value = each
        count += 1
        if place.text and of.text:
            lines[family].append(f"{family.name}{{{of.text},{place.text}}} {value}")
        elif place.text or of.text:
            lines[family].append(f"{family.name}{{{of.text}{place.text}}} {value}")
        else:
            lines[family].append(f"{family.name} {value}")
    return count


def _text(column: Column) -> str:
    """One text of all lines: to keep each of a million would take longer than to make them."""
    name, of = column.family.name, column.of.text
    before = f"{name}{{{of}," if of else f"{name}{{"
    placed = zip(column.places, column.values, strict=True)
    return "\n".join([f"{before}{place.text}}} {value}" for place, value in placed])


def known(family: Family, of: Labels, place: Labels, value: float | None) -> Iterator[Row]:
    """A sample, unless the value is not known."""
    if value is not None:
        yield family, of, place, value
