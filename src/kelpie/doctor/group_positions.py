"""Where a group stood: commits or committed offsets by partition, made when a rule asks for them.

10,000 groups with ten partitions each have 100,000s of such rows, and hardly any group is ill. Most rows come
as *runs*: what one survey was told of a group, or what the group committed by one request. Of healthy groups,
runs are compared with each other as a whole (`plain_positions`), and no row of a single partition is made.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed
from kelpie.observations.group_offsets import GroupCommits, GroupOffsets
from kelpie.observations.ordering import by_time
from kelpie.observations.positions import NO_OFFSET

Row = TypeVar("Row", bound=Commit | Committed)
Value = TypeVar("Value")
Row_co = TypeVar("Row_co", bound=Commit | Committed, covariant=True)

_group_and_time = attrgetter("group", "at")
_offset = itemgetter(3)


class Run(Protocol[Row_co]):
    """Rows of one group and of one time, one for each partition."""

    @property
    def group(self) -> str: ...
    @property
    def names(self) -> tuple[TopicPartition, ...]: ...
    @property
    def offsets(self) -> tuple[int, ...]: ...
    @property
    def at(self) -> Instant | None: ...
    @property
    def rows(self) -> Sequence[Row_co]: ...


class RowRun(NamedTuple, Generic[Row]):
    """A run of rows that came one by one."""

    group: str
    names: tuple[TopicPartition, ...]
    offsets: tuple[int, ...]
    at: Instant | None
    rows: Sequence[Row]


class _ByPartition(Mapping[TopicPartition, Value]):
    """Sorted when a rule first asks for a partition. Most groups are judged without."""

    __slots__ = ("_by_partition",)

    _by_partition: dict[TopicPartition, Value] | None
    """None: not sorted yet."""

    def __getitem__(self, name: TopicPartition) -> Value:
        return self._sorted()[name]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._sorted())

    def __len__(self) -> int:
        return len(self._sorted())

    def _sorted(self) -> dict[TopicPartition, Value]:
        if self._by_partition is None:
            self._by_partition = self._sort()
        return self._by_partition

    @abstractmethod
    def _sort(self) -> dict[TopicPartition, Value]: ...


class Positions(_ByPartition[tuple[Row, ...]], Generic[Row]):
    """The rows of one group by partition, and by time under each partition."""

    __slots__ = ("runs",)

    def __init__(self, runs: Sequence[Run[Row]] = ()) -> None:
        self._by_partition = None
        self.runs = runs
        """By time; those without a time come first."""

    def __bool__(self) -> bool:
        return bool(self.runs)

    def _sort(self) -> dict[TopicPartition, tuple[Row, ...]]:
        return _side_by_side(self.runs) or _row_by_row(self.runs)


def _side_by_side(runs: Sequence[Run[Row]]) -> dict[TopicPartition, tuple[Row, ...]]:
    """Of runs with the same partitions in the same order; nothing of others."""
    names = runs[0].names if runs else ()
    if any(run.names != names for run in runs):
        return {}
    positions = dict(zip(names, zip(*(run.rows for run in runs), strict=True), strict=True))
    return positions if len(positions) == len(names) else {}


def _row_by_row(runs: Sequence[Run[Row]]) -> dict[TopicPartition, tuple[Row, ...]]:
    by_name: defaultdict[TopicPartition, list[Row]] = defaultdict(list)
    for run in runs:
        for name, row in zip(run.names, run.rows, strict=True):
            by_name[name].append(row)
    return {name: by_time(rows) for name, rows in by_name.items()}


class LastOffsets(_ByPartition[Committed]):
    """What one survey was told of a group, by partition."""

    __slots__ = ("told",)

    def __init__(self, told: Run[Committed]) -> None:
        self._by_partition = None
        self.told = told

    def __bool__(self) -> bool:
        return True

    def _sort(self) -> dict[TopicPartition, Committed]:
        return dict(zip(self.told.names, self.told.rows, strict=True))


def runs_by_group(runs: Iterable[Run[Row]], rows: Iterable[Row]) -> dict[str, tuple[Run[Row], ...]]:
    """Runs, and rows that came one by one, of each group by time."""
    by_group: defaultdict[str, list[Run[Row]]] = defaultdict(list)
    for run in chain(runs, _runs_of(rows)):
        by_group[run.group].append(run)
    return {group: by_time(of_group) for group, of_group in by_group.items()}


def _runs_of(rows: Iterable[Row]) -> Iterator[RowRun[Row]]:
    """Rows of a group and of one time that follow each other, up to where a partition comes again."""
    for (group, at), together in groupby(rows, _group_and_time):
        names: dict[TopicPartition, Row] = {}
        for row in together:
            if row.name in names:
                yield _run(group, at, names)
                names = {}
            names[row.name] = row
        yield _run(group, at, names)


def _run(group: str, at: Instant | None, rows: Mapping[TopicPartition, Row]) -> RowRun[Row]:
    offsets = tuple(map(_offset, rows.values()))
    return RowRun(group, tuple(rows), offsets, at, tuple(rows.values()))


def committed_since(commits: Mapping[TopicPartition, tuple[Commit, ...]], since: Instant) -> bool:
    """Whether any offset was committed after this time."""
    if isinstance(commits, Positions):
        later = [run for run in commits.runs if run.at is not None and run.at > since]
        return any(max(run.offsets) > NO_OFFSET for run in later)
    rows = chain.from_iterable(commits.values())
    return any(row.at is not None and row.at > since and row.offset != NO_OFFSET for row in rows)


def commits_since(
    commits: Mapping[TopicPartition, tuple[Commit, ...]], since: Instant
) -> Sequence[tuple[Instant, int]]:
    """Times of commits after this one, each with how many offsets were committed then, or some of them."""
    if not isinstance(commits, Positions):
        rows = chain.from_iterable(commits.values())
        return [(row.at, 1) for row in rows if row.at is not None and row.at > since and not row.removed]
    newest = commits.runs[-1].at if commits.runs else None  # They are by time.
    if newest is None or newest <= since:
        return ()
    return [
        (run.at, len(run.offsets) - run.offsets.count(NO_OFFSET))
        for run in commits.runs
        if run.at is not None and run.at > since
    ]


def stands_still(before: Mapping[TopicPartition, Committed], now: Mapping[TopicPartition, Committed]) -> bool:
    """Whether both are the same offsets of the same partitions, as far as that shows at a glance."""
    return (
        isinstance(before, LastOffsets)
        and isinstance(now, LastOffsets)
        and isinstance(before.told, GroupOffsets)
        and isinstance(now.told, GroupOffsets)
        and before.told.offsets == (offsets := now.told.offsets)
        and before.told.names == now.told.names
        and bool(offsets)
        and min(offsets) > NO_OFFSET
    )


def rows_in(positions: Mapping[TopicPartition, tuple[Row, ...]]) -> int:
    """How many there are."""
    if isinstance(positions, Positions):
        return sum(len(run.names) for run in positions.runs)
    return sum(map(len, positions.values()))


def runs_of(
    committed: Mapping[TopicPartition, Committed],
    commits: Mapping[TopicPartition, tuple[Commit, ...]],
    looks: Mapping[TopicPartition, tuple[Committed, ...]],
) -> tuple[Run[Committed], Sequence[Run[Commit]], Sequence[Run[Committed]]] | None:
    """What was told last, the commits, and all that was told. None: some of it came in other ways."""
    if isinstance(committed, LastOffsets) and isinstance(commits, Positions) and isinstance(looks, Positions):
        return committed.told, commits.runs, looks.runs
    return None


def has_errors(told: Run[Committed]) -> bool:
    return not isinstance(told, GroupOffsets) and any(row.error for row in told.rows)


def topic_ids(run: Run[Commit]) -> tuple[str, ...]:
    return run.topic_ids if isinstance(run, GroupCommits) else tuple(row.topic_id for row in run.rows)
