"""All that was seen, from any number of places."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import chain

from kelpie.observations.cluster import (
    BrokerView,
    Certificate,
    ClockReading,
    CoordinatorAnswer,
    PartitionView,
    Setting,
    TopicView,
    Unasked,
)
from kelpie.observations.events import Event
from kelpie.observations.group_offsets import GroupCommits, GroupOffsets
from kelpie.observations.groups import Generation, GroupRemoved, GroupState, Illness, Listing
from kelpie.observations.mappings import MappingListing, MappingNode
from kelpie.observations.positions import (
    Commit,
    Committed,
    LeaderEpochEnd,
    LogEnds,
    LogSize,
    OpenTransaction,
    PendingCommit,
)
from kelpie.observations.traffic import MalformedSeries, Scrape, TrafficSeries
from kelpie.observations.zookeeper_groups import ZooKeeperGroup


@dataclass(slots=True)
class Observations:
    """One list per kind of row. Rows are in the order in which they were seen, as far as that is known."""

    brokers: list[BrokerView] = field(default_factory=list)
    partitions: list[PartitionView] = field(default_factory=list)
    topics: list[TopicView] = field(default_factory=list)
    clocks: list[ClockReading] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    answers: list[CoordinatorAnswer] = field(default_factory=list)
    states: list[GroupState] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    removals: list[GroupRemoved] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    group_commits: list[GroupCommits] = field(default_factory=list)
    """Commits with one row for each request; `all_commits` has theirs, too."""
    pending_commits: list[PendingCommit] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    group_offsets: list[GroupOffsets] = field(default_factory=list)
    """Committed offsets with one row for each group and survey; `all_committed` has theirs, too."""
    ends: list[LogEnds] = field(default_factory=list)
    sizes: list[LogSize] = field(default_factory=list)
    transactions: list[OpenTransaction] = field(default_factory=list)
    epoch_ends: list[LeaderEpochEnd] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    unasked: list[Unasked] = field(default_factory=list)
    scrapes: list[Scrape] = field(default_factory=list)
    traffic: list[TrafficSeries] = field(default_factory=list)
    malformed: list[MalformedSeries] = field(default_factory=list)
    mapping_listings: list[MappingListing] = field(default_factory=list)
    mappings: list[MappingNode] = field(default_factory=list)
    illnesses: list[Illness] = field(default_factory=list)
    zookeeper_groups: list[ZooKeeperGroup] = field(default_factory=list)
    known_groups: dict[str, str] = field(default_factory=dict)
    """Known groups, and from where: an earlier survey, a log, a topic, a disk."""

    def __repr__(self) -> str:
        """How many rows of each kind. All of them would be megabytes, and asyncio prints results of tasks."""
        counted = ((each.name, len(getattr(self, each.name))) for each in fields(self))
        return f"Observations({', '.join(f'{name}: {rows}' for name, rows in counted if rows)})"

    def row_count(self) -> int:
        """All rows of all kinds, and groups that are only known."""
        return sum(len(getattr(self, each.name)) for each in fields(self))

    @property
    def all_commits(self) -> Iterator[Commit]:
        """One row for each partition."""
        return chain(self.commits, chain.from_iterable(run.rows for run in self.group_commits))

    @property
    def all_committed(self) -> Iterator[Committed]:
        """One row for each partition."""
        return chain(self.committed, chain.from_iterable(told.rows for told in self.group_offsets))

    def by_partition(self) -> "Observations":
        """Puts one row for each partition in the place of those for several. Returns itself."""
        self.commits, self.group_commits = list(self.all_commits), []
        self.committed, self.group_offsets = list(self.all_committed), []
        return self

    def add(self, *others: "Observations") -> "Observations":
        """Take over all rows of others. Returns itself."""
        for other in others:
            for each in fields(self):
                mine, theirs = getattr(self, each.name), getattr(other, each.name)
                if isinstance(mine, dict):
                    for group, source in theirs.items():
                        mine.setdefault(group, source)
                else:
                    mine.extend(theirs)
        return self
