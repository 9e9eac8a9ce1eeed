"""Which of many snapshots of a cluster the doctor uses.

The newest counts in full, and of some earlier ones what `observations.earlier` keeps: so a folder of
snapshots says what the doctor would have said at the time of the newest, with its own store. Leaders of the
offsets topic are taken from all snapshots, wherever a leader changed. For a group that cannot be asked any
more, the last snapshot with its committed offsets counts, too.

Of surveys in which no broker answered only the last counts, and only if it is newer than all others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kelpie.evidence.snapshot_files import Header
from kelpie.observations import PartitionView, Unasked
from kelpie.observations.earlier import best_views, kept, minute

MOST_RECENT = 8
"""So many snapshots right before the newest one count, besides those chosen by age."""


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
    kept_times = kept((headers[name].ended for name in answered), end)
    recent = answered[-MOST_RECENT - 1 :]
    earlier = [name for name in answered[:-1] if headers[name].ended in kept_times or name in recent]
    late = [name for name in failed if headers[name].ended > end]
    return Choice(newest, tuple(earlier), tuple(late[-1:]), tuple(answered), tuple(foreign), mine)


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
            if before is None or (before.leader, before.replicas) != (view.leader, view.replicas):
                self._changes.append(view)
        self._last = best or self._last

    def rows(self) -> list[PartitionView]:
        """All changes, then the last views. They name no broker as source, as outputs of tools do."""
        return [view._replace(told_by=None) for view in (*self._changes, *self._last.values())]
