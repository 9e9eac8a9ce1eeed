"""What exporters share: families of metrics, and the text of their samples."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kelpie.model.prometheus_text import sample


class Family(NamedTuple):
    """A gauge; no exporter here counts anything that only grows."""

    name: str
    help: str


Labels = Mapping[str, object]
Row = tuple[Family, Labels, float]
Samples = dict[Family, list[str]]


def families_in(holder: type) -> list[Family]:
    """Those that a class declares, in its order."""
    return [value for value in vars(holder).values() if isinstance(value, Family)]


def samples_of(rows: Iterable[Row]) -> Samples:
    samples: defaultdict[Family, list[str]] = defaultdict(list)
    for family, labels, value in rows:
        samples[family].append(sample(labels, value))
    return dict(samples)
