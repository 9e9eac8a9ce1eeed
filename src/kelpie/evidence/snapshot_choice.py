"""Which of many snapshots of a cluster the doctor uses.

The newest counts in full, and of some earlier ones what `observations.earlier` keeps: so a folder of
snapshots says what the doctor would have said at the time of the newest, with its own store. Leaders of the
offsets topic are taken from all snapshots, wherever a leader changed. For a group that cannot be asked any
more, the last snapshot with its committed offsets counts, too.

Of surveys in which no broker answered only the last counts, and only if it is newer than all others.

The earlier ones are chosen among those that `lasting` leaves: the older, the fewer. What it drops it would
also drop after any later snapshot. So whoever keeps only these, and the headers of the others, as the rounds
of the pipeline do, chooses what one chooses who has all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kelpie.evidence.snapshot_files import Header
from kelpie.observations import PartitionView, Unasked
from kelpie.observations.earlier import best_views, kept, minute

MOST_RECENT = 8
"""So many snapshots right before the newest one count, besides those chosen by age."""
_MINUTE = 60_000
_HOUR = 60 * _MINUTE
_SPANS_MS = (
    (30 * _MINUTE, 10 * _MINUTE),
    (3 * _HOUR, _HOUR),
    (24 * _HOUR, 8 * _HOUR),
    (7 * 24 * _HOUR, 24 * _HOUR),
)
"""Up to this age, the first snapshot of each such period lasts. Each period is a part of the next one, so the
first of a long one is the first of a short one, too.
"""
REMEMBERED_MS = 8 * 24 * _HOUR
"""Older headers change nothing: they are not in one period with a snapshot that may last."""
_ALL_MS = 7 * _MINUTE
"""All that are younger last."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Names of snapshots, by how the doctor uses them. Each tuple is in order of time."""

    newest: str | None = None
    earlier: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """The last survey after the newest, if no broker answered it."""
    in_order: tuple[str, ...] = ()
    """All in which a broker answered."""
    foreign: tuple[str, ...] = ()
    """Those of another cluster."""
    cluster: str = ""

    @property
    def used(self) -> tuple[str, ...]:
        """The newest and the earlier ones."""
        return (*self.earlier, self.newest) if self.newest is not None else self.earlier


def choose(headers: Mapping[str, Header], cluster: str | None = None) -> Choice:
    """`headers`: by name of the snapshot. `cluster`: which to use, if there are several."""
    counted = Counter(header.cluster for header in headers.values() if header.answered)
    if not counted:
        names = _in_order(headers)
        return Choice(failed=tuple(names[-1:]), cluster=headers[names[-1]].cluster if names else "")
    mine = (
        cluster
        if cluster is not None and cluster in counted
        else max(counted, key=lambda name: (counted[name], name))
    )
    bootstraps = {header.bootstrap for header in headers.values() if header.cluster == mine}
    answered: list[str] = []
    failed: list[str] = []
    foreign: list[str] = []
    for name in _in_order(headers):
        header = headers[name]
        # Until a broker has answered, only its addresses identify a cluster.
        if header.cluster != mine and (header.answered or header.bootstrap not in bootstraps):
            foreign.append(name)
        else:
            (answered if header.answered else failed).append(name)
    newest = answered[-1]
    end = headers[newest].ended
    left = lasting({name: headers[name] for name in answered})
    kept_times = kept((headers[name].ended for name in answered if name in left), end)
    recent = answered[-MOST_RECENT - 1 :]
    earlier = [
        name
        for name in answered[:-1]
        if (name in left and headers[name].ended in kept_times) or name in recent
    ]
    late = [name for name in failed if headers[name].ended > end]
    return Choice(newest, tuple(earlier), tuple(late[-1:]), tuple(answered), tuple(foreign), mine)


def lasting(headers: Mapping[str, Header]) -> set[str]:
    """Names of the snapshots that may be chosen, now or later. Of each cluster, and of failed ones, apart."""
    by_kind: dict[tuple[str, bool], list[str]] = {}
    for name in _in_order(headers):
        by_kind.setdefault((headers[name].cluster, bool(headers[name].answered)), []).append(name)
    last: set[str] = set()
    for names in by_kind.values():
        last.update(names[-MOST_RECENT - 1 :])
        end = headers[names[-1]].ended
        first: dict[tuple[int, int], str] = {}
        for name in names:
            for _, length in _SPANS_MS:
                first.setdefault((length, headers[name].ended // length), name)
        for name in names:
            ended = headers[name].ended
            period = next((length for age, length in _SPANS_MS if end - ended < age), None)
            is_first = period is not None and first[period, ended // period] == name
            if is_first or end - ended < _ALL_MS:
                last.add(name)
    return last


def _in_order(headers: Mapping[str, Header]) -> list[str]:
    return sorted(headers, key=lambda name: (headers[name].ended, name))


def other_cluster(header: Header, choice: Choice) -> str:
    """Why a foreign snapshot is not used."""
    return (
        f"It is a snapshot of cluster {header.cluster}; most are of {choice.cluster}, and one cluster is "
        "looked at at a time."
    )


def failed_row(row: Unasked) -> Unasked:
    """A row of a survey that no broker answered. Its time must not count as the newest known state."""
    if row.at is None:
        return row
    return replace(row, at=None, reason=f"{row.reason.rstrip('.')} ({minute(row.at)}).")


def is_change(before: PartitionView | None, view: PartitionView) -> bool:
    return before is None or (before.leader, before.replicas) != (view.leader, view.replicas)


class LeaderChanges:
    """Leaders of the offsets topic over time: one view of each partition, kept where the leader changed.

    Snapshots must come in order of time.
    """

    def __init__(self) -> None:
        self._changes: list[PartitionView] = []
        self._last: dict[int, PartitionView] = {}

    def add(self, views: Iterable[PartitionView]) -> None:
        """The views of one snapshot."""
        best = best_views(views)
        for partition, view in best.items():
            before = self._last.get(partition)
            if is_change(before, view):
                self._changes.append(view)
            self._last[partition] = view

    def rows(self) -> list[PartitionView]:
        """All changes, then the last views. They name no broker as source, as outputs of tools do."""
        return [view._replace(told_by=None) for view in (*self._changes, *self._last.values())]
