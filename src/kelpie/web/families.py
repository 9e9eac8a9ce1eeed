"""What exporters share: families of metrics, labels, and the text of samples.

There may be a million samples. So the text of labels is made once for a group and once for a partition, and
put together for each sample, fastest where samples of one family and group follow each other; `pairs` has the
same labels for those that send no text (OpenTelemetry).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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


def add_lines(lines: Lines, rows: Iterable[Row]) -> int:
    """Adds the text of these samples. Returns how many there were."""
    count = 0
    last: tuple[Family | None, Labels | None] = (None, None)
    begin, add = "", None
    for family, one, other, value in rows:
        if add is None or family is not last[0] or one is not last[1]:
            last = family, one
            begin, add = f"{family.name}{{{one.text}", lines[family].append
        if one.text and other.text:
            add(f"{begin},{other.text}}} {value}")
        elif one.text or other.text:
            add(f"{begin}{other.text}}} {value}")
        else:
            add(f"{family.name} {value}")
        count += 1
    return count


def known(family: Family, of: Labels, place: Labels, value: float | None) -> Iterator[Row]:
    """A sample, unless the value is not known."""
    if value is not None:
        yield family, of, place, value
