"""`/metrics`: the numbers of the last looks as Prometheus reads them, under one or several exporters' names.

What a look alone decides is made once, when somebody first asks after that look; only the age of a look is
made for each scrape. It comes last, so that a compressed scrape is the kept bytes and a few more behind them.
"""

import struct
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol

from kelpie.client.garbage import few_collections
from kelpie.model.prometheus_text import head
from kelpie.model.selection import ALL_GROUPS, Selection
from kelpie.web import metrics
from kelpie.web.exporters import burrow, kafka_exporter, kminion, lag_exporter
from kelpie.web.families import NO_LABELS, Column, Family, Lines, Row, add_lines, families_in, labels
from kelpie.web.metrics import Families
from kelpie.web.numbers import ClusterNumbers, GroupNumbers
from kelpie.web.watch import Watch

OWN, BURROW = "kelpie", "burrow"
_SCRAPED = (Families.AGE, Families.FAILED)
"""What changes between looks."""
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LEVEL = 3


class Exporter(Protocol):
    """The numbers of one cluster under the names of an exporter."""

    def of_cluster(self, numbers: ClusterNumbers, /) -> Iterator[Row]: ...

    def of_group(
        self, group: GroupNumbers, numbers: ClusterNumbers, /, *, by_partition: bool
    ) -> Iterator[Row | Column]: ...


class ExporterNames(NamedTuple):
    families: type
    """Declares them in order."""
    of: Callable[[str], Exporter]
    """By the name of a cluster."""


EXPORTERS = {
    OWN: ExporterNames(metrics.Families, metrics.KelpieExporter),
    "kafka-exporter": ExporterNames(kafka_exporter.Families, kafka_exporter.KafkaExporter),
    "kminion": ExporterNames(kminion.Families, kminion.KMinion),
    "lag-exporter": ExporterNames(lag_exporter.Families, lag_exporter.LagExporter),
    BURROW: ExporterNames(burrow.Families, burrow.Burrow),
}
"""Whose names the numbers can have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many series there may be."""

    groups: Selection = ALL_GROUPS
    """Which groups have series of their own."""
    by_partition: bool = True
    """Whether each partition of a group has; else, topics have."""
    most: int | None = None
    """Samples of groups. Groups with findings come first, then all others by name."""

    def chosen(self, numbers: ClusterNumbers) -> list[GroupNumbers]:
        groups = list(numbers.groups.values())
        if not self.groups.is_all:
            names = set(self.groups.chosen(numbers.groups.keys()))
            groups = [group for group in groups if group.row.group in names]
        if self.most is not None:
            groups.sort(key=lambda group: (group.row.worst is None, group.row.group))
        return groups


class _Made(NamedTuple):
    """What is kept of one state of all clusters."""

    of: tuple[ClusterNumbers | None, ...]
    text: bytes
    packed: bytes
    """Raw deflate, without an end."""
    checksum: int


class Exposition:
    def __init__(
        self, watches: Sequence[Watch], exporters: Sequence[str] = (OWN,), limits: Limits | None = None
    ) -> None:
        self._watches = list(watches)
        self._exporters = {name: EXPORTERS[name] for name in exporters}
        self._limits = limits or Limits()
        self._making = threading.Lock()
        self._made = _Made((), b"", b"", 0)

    def text(self) -> bytes:
        return self._current().text + self._scraped()

    def gzipped(self) -> bytes:
        """The same, compressed."""
        made, scraped = self._current(), self._scraped()
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        end = packer.compress(scraped) + packer.flush()
        checksum = zlib.crc32(scraped, made.checksum)
        size = len(made.text) + len(scraped)
        return _GZIP_HEAD + made.packed + end + struct.pack("<II", checksum, size & 0xFFFFFFFF)

    def _current(self) -> _Made:
        of = tuple(watch.meter.latest for watch in self._watches)
        with self._making:
            if not _are_same(of, self._made.of) or not self._made.text:
                with few_collections():  # It makes the rows of 100,000 partitions, which stay.
                    text = self._make(of)
                packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
                packed = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
                self._made = _Made(of, text, packed, zlib.crc32(text))
            return self._made

    def _make(self, of: Sequence[ClusterNumbers | None]) -> bytes:
        lines: Lines = defaultdict(list)
        left = self._limits.most
        for watch, numbers in zip(self._watches, of, strict=True):
            if numbers is None:
                continue
            made = [names.of(watch.name) for names in self._exporters.values()]
            for exporter in made:
                add_lines(lines, exporter.of_cluster(numbers))
            groups = self._limits.chosen(numbers)
            shown = 0
            for some in [groups] if left is None else [[group] for group in groups]:
                if left is not None and left <= 0:
                    break
                shown += len(some)
                for exporter in made:
                    count = add_lines(lines, self._of_groups(exporter, some, numbers))
                    left = None if left is None else left - count
            left_out = len(numbers.groups) - shown
            add_lines(lines, [(Families.LEFT_OUT, labels(cluster=watch.name), NO_LABELS, left_out)])
        return _text(
            (each, lines[each])
            for names in self._exporters.values()
            for each in families_in(names.families)
            if each in lines
        )

    def _of_groups(
        self, exporter: Exporter, groups: Sequence[GroupNumbers], numbers: ClusterNumbers
    ) -> Iterator[Row | Column]:
        by_partition = self._limits.by_partition
        if isinstance(exporter, metrics.KelpieExporter):
            return exporter.of_groups(groups, numbers, by_partition=by_partition)
        return chain.from_iterable(
            exporter.of_group(group, numbers, by_partition=by_partition) for group in groups
        )

    def _scraped(self) -> bytes:
        if OWN not in self._exporters:
            return b""
        lines: Lines = defaultdict(list)
        for watch in self._watches:
            cluster = labels(cluster=watch.name)
            add_lines(lines, [(Families.FAILED, cluster, NO_LABELS, watch.failures)])
            if watch.age_ms is not None:
                add_lines(lines, [(Families.AGE, cluster, NO_LABELS, watch.age_ms / 1000)])
        return _text((each, lines[each]) for each in _SCRAPED if each in lines)


def _text(families: Iterable[tuple[Family, Sequence[str]]]) -> bytes:
    """Put together once: to copy 50 megabytes takes as long as to make a tenth of them."""
    parts: list[str] = []
    for each, lines in families:
        parts.append(head(each.name, each.kind, each.help).removesuffix("\n"))
        parts += lines
    return "\n".join([*parts, ""]).encode()


def _are_same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(lambda here, there: here is there, one, other))
