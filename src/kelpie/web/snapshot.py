"""One look at a cluster, ready to be shown."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from kelpie.doctor.broker_loss import Needs, NeedsOfGroups, broker_losses
from kelpie.doctor.case import Case
from kelpie.doctor.chapters import brief, chapters
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding
from kelpie.doctor.group_positions import rows_in
from kelpie.doctor.overview import GroupOverview, partitions_of, reads_of, worst_findings
from kelpie.doctor.standings import PartitionOverview
from kelpie.examination import Examined
from kelpie.model.time import Instant
from kelpie.web.numbers import GroupNumbers, group_numbers

T = TypeVar("T")


class KnownGroups(NamedTuple):
    rows: tuple[GroupOverview, ...]
    readers: Mapping[str, Sequence[str]]
    """By topic, the groups that read it."""
    needed: Sequence[Needs] = ()


_OF_GROUP, _OF_FINDING, _OF_ROW, _OF_REFERENCE = 300, 3_000, 200, 8
"""Bytes, roughly."""


class Snapshot:
    """Made by the thread that looked; pages only read it."""

    def __init__(
        self,
        examined: Examined,
        at: Instant,
        took_ms: int,
        known: KnownGroups | None = None,
        case_of: Callable[[str], Case | None] = lambda _: None,
    ) -> None:
        """`known`: what is known of groups, if not from cases. `case_of`: reads one that is not at hand."""
        self.diagnosis: Diagnosis = examined.diagnosis
        self.saw_anything = examined.saw_anything
        self.at = at
        """When the look began."""
        self.took_ms = took_ms
        unheard_of = set(self.diagnosis.unheard_of)
        self._cases = {case.group: case for case in examined.cases if case.group not in unheard_of}
        self.numbers: list[GroupNumbers] = []
        """Of each group; empty where groups are not known by cases."""
        self.groups, self.readers, needed = known or self._from_cases()
        self.losses = broker_losses(self.diagnosis.cluster, needed)
        self.chapters = chapters(self.diagnosis)
        self.brief = brief(self.diagnosis)
        self.findings_by_group: defaultdict[str, list[Finding]] = defaultdict(list)
        """Worst first. Groups without findings are not in it."""
        for finding in self.diagnosis.findings:
            if finding.group is not None:
                self.findings_by_group[finding.group].append(finding)
        self._case_of = case_of
        self._making = threading.Lock()
        self._kept: dict[str, Any] = {}

    def _from_cases(self) -> KnownGroups:
        needed = NeedsOfGroups()
        worst = worst_findings(self.diagnosis.findings)
        for case in self._cases.values():
            numbers = group_numbers(case, worst.get(case.group), self.at)
            self.numbers.append(numbers)
            needed.add(case.group, reads_of(case, numbers.partitions), case.offsets_partition)
        readers: defaultdict[str, list[str]] = defaultdict(list)
        for groups, reads, _ in needed.all:
            for topic in {name.topic for name in reads}:
                readers[topic] += groups
        return KnownGroups(tuple([numbers.row for numbers in self.numbers]), readers, needed.all)

    @property
    def now(self) -> Instant:
        """The time of the picture: the end of what is known."""
        return self.diagnosis.cluster.now

    @property
    def has_cases(self) -> bool:
        """Whether all that was observed of each group is there, and not only its row."""
        return bool(self._cases) or not self.groups

    def shows_no(self, group: str, *, in_zookeeper: bool = False) -> bool:
        """Whether the look shows that there is no such group: all were listed, and it was not among them."""
        cluster, case = self.diagnosis.cluster, self._cases.get(group)
        if in_zookeeper:
            could_ask = not any(row.kind == "zookeeper" for row in self.diagnosis.unasked)
            return case is None and self.saw_anything and could_ask
        if case is not None and case.listed is not False:
            return False
        home = cluster.home_of(group)
        return cluster.listing_complete and home is not None and cluster.has_leader(home) is True

    def case(self, group: str) -> Case | None:
        """A copy: what is derived of it goes with the page."""
        found = self._cases.get(group) or self._case_of(group)
        return None if found is None else copy(found)

    def observed(self) -> Mapping[str, Case]:
        """Themselves: for those who derive nothing of them."""
        return self._cases

    def row(self, group: str) -> GroupOverview | None:
        by_name = self.kept("rows by name", lambda made: {row.group: row for row in made.groups})
        return by_name.get(group)

    def partitions_of(self, case: Case) -> Sequence[PartitionOverview]:
        """Of one group. They are at hand if the look made them for exporters."""
        by_name = self.kept("numbers by name", lambda made: {each.row.group: each for each in made.numbers})
        known = by_name.get(case.group)
        return known.partitions if known is not None else partitions_of(case)

    def findings_of(self, group: str) -> list[Finding]:
        """Worst first."""
        return self.findings_by_group.get(group, [])

    def kept(self, name: str, make: Callable[["Snapshot"], T]) -> T:
        """What `make` makes of it: made once, when somebody first asks."""
        with self._making:
            if name not in self._kept:
                self._kept[name] = make(self)
            made: T = self._kept[name]
            return made

    @property
    def bytes(self) -> int:
        """Roughly, what it takes to keep it."""
        return sum(self._sizes())

    def _sizes(self) -> Iterator[int]:
        yield _OF_REFERENCE * sum(map(len, self.readers.values()))
        yield _OF_GROUP * len(self.groups) + _OF_FINDING * len(self.diagnosis.findings)
        yield _OF_ROW * sum(map(len, self.diagnosis.cluster.ends.values()))
        yield _OF_ROW * sum(map(len, self.diagnosis.cluster.views.values()))
        for case in self._cases.values():
            rows = rows_in(case.commits) + rows_in(case.committed_over_time)
            yield _OF_ROW * (rows + len(case.events) + len(case.generations) + len(case.states))

    def light(self) -> "Snapshot":
        """Without what was observed of single groups and of topics: what remains is small, and is shown."""
        made = copy(self)
        made._cases, made.numbers = {}, []
        made._making, made._kept = threading.Lock(), {}
        cluster = self.diagnosis.cluster
        views = {name: cluster.views[name] for name in cluster.offsets_topic if name in cluster.views}
        small = replace(
            cluster,
            views=views,
            earlier_views={},
            ends={},
            events=(),
            scrapes=(),
            traffic=(),
            mapping_listings=(),
            mappings=(),
            listed_groups=frozenset(),
        )
        made.diagnosis = replace(self.diagnosis, cluster=small)
        return made
