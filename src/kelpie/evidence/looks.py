"""Of many snapshots of a cluster, what the doctor looks at: the newest in full, of a few earlier ones what he
would have kept in mind himself.

So a folder of snapshots says what the doctor would have said when the newest was taken, had he looked at the
others too. What an earlier look saw counts as that and no more: states, committed offsets, ends of logs,
which groups there were; not who was alive, since that is asked anew each time. The leaders of the offsets
topic are remembered of all snapshots, wherever they changed; and for a group that nobody can be asked about
any more, where it stood when somebody could last.

Rounds in which nobody answered tell only that; the last one is told, if no answer came after it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.evidence.collected import KNOWN, Header, take
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    Broker,
    Committed,
    Listing,
    Observations,
    PartitionView,
    Unasked,
)
from kelpie.observations.thinning import kept

MOST_RECENT = 8
"""So many looks before the newest one count, beside those of some age."""
OF_EARLIER = ("broker", "listing", "state", "committed", "ends", KNOWN)
"""What counts of an earlier look."""
_KEPT_ERRORS = (ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT)


@dataclass(frozen=True, slots=True)
class Choice:
    """Names of snapshots, by what they are to the doctor. Each is in order of time."""

    newest: str | None = None
    earlier: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """The last round behind the newest, if nobody answered any more."""
    in_order: tuple[str, ...] = ()
    """All in which somebody answered."""
    foreign: tuple[str, ...] = ()
    """Those of another cluster."""
    cluster: str = ""


def choose(headers: Mapping[str, Header], cluster: str | None = None) -> Choice:
    """`headers`: by name of the snapshot. `cluster`: which one is meant, if there are several."""
    counted = Counter(header.cluster for header in headers.values() if header.answered)
    if not counted:
        names = _in_order(headers)
        return Choice(failed=tuple(names[-1:]), cluster=headers[names[-1]].cluster if names else "")
    mine = (
        cluster
        if cluster is not None and cluster in counted
        else max(counted, key=lambda it: (counted[it], it))
    )
    bootstraps = {it.bootstrap for it in headers.values() if it.cluster == mine}
    answered: list[str] = []
    failed: list[str] = []
    foreign: list[str] = []
    for name in _in_order(headers):
        header = headers[name]
        # Before anybody has answered, a cluster goes by its addresses.
        if header.cluster != mine and (header.answered or header.bootstrap not in bootstraps):
            foreign.append(name)
        else:
            (answered if header.answered else failed).append(name)
    newest = answered[-1]
    end = headers[newest].ended
    moments = kept((headers[name].ended for name in answered), end)
    recent = answered[-MOST_RECENT - 1 :]
    earlier = [name for name in answered[:-1] if headers[name].ended in moments or name in recent]
    late = [name for name in failed if headers[name].ended > end]
    return Choice(newest, tuple(earlier), tuple(late[-1:]), tuple(answered), tuple(foreign), mine)


def _in_order(headers: Mapping[str, Header]) -> list[str]:
    return sorted(headers, key=lambda name: (headers[name].ended, name))


def earlier_rows(kind: str, row: Any) -> Iterator[tuple[str, Any]]:
    """What counts of a row of an earlier look."""
    if kind == "broker" and row.host:
        yield kind, Broker(row.node_id, row.host, row.port, at=row.at, source=row.source)
    elif kind == "listing":
        yield from ((KNOWN, {"group": group, "source": _seen(row)}) for group in row.groups)
    elif (
        kind == KNOWN
        or (kind == "state" and not row.error)
        or (kind == "committed" and row.error in _KEPT_ERRORS)
        or (kind == "ends" and not row.error and row.latest >= 0 and row.earliest >= 0)
    ):
        yield kind, row


def failed_row(row: Unasked) -> Unasked:
    """When nobody answered, nothing was seen: that is no later state of the cluster."""
    if row.at is None:
        return row
    return replace(row, at=None, reason=f"{row.reason.rstrip('.')} ({_moment(row.at)}).")


class Leaders:
    """The leaders of the offsets topic over time: of each snapshot the best view, kept where it changed.

    Snapshots must come in order. `last` has all views of the last snapshot that was noted.
    """

    def __init__(self) -> None:
        self.changes: list[PartitionView] = []
        self.last: dict[int, PartitionView] = {}

    def note(self, views: Iterable[PartitionView]) -> None:
        best: dict[int, PartitionView] = {}
        for view in views:
            if view.topic == OFFSETS_TOPIC and view.partition >= 0 and view.told_by is not None:
                known = best.get(view.partition)
                if known is None or _weight(view) > _weight(known):
                    best[view.partition] = view
        for partition, view in sorted(best.items()):
            before = self.last.get(partition)
            if before is None or (before.leader, before.replicas) != (view.leader, view.replicas):
                self.changes.append(view._replace(told_by=None))
        if best:
            self.last = best

    def rows(self) -> list[PartitionView]:
        """All changes, and how it stood at the end: as a tool would have shown it, since nobody asks it."""
        return [*self.changes, *(view._replace(told_by=None) for view in self.last.values())]


def _weight(view: PartitionView) -> tuple[int, int, bool, int]:
    return view.leader_epoch, len(view.replicas), view.leader == view.told_by, -(view.told_by or 0)


def standing(rows: Iterable[Committed], known: Iterable[str]) -> set[str]:
    """Groups that somebody knows, and that none of the rows tells of."""
    return set(known) - {row.group for row in rows}


Reader = Callable[[str, Callable[[str], bool]], Iterator[tuple[str, Any]]]
"""Rows of a snapshot by its name; of those lines only that are wanted, by how they begin."""


def look(choice: Choice, read: Reader) -> Observations:
    """All that the doctor looks at. Whatever `read` raises is raised."""
    found = Observations()
    leaders = Leaders()
    chosen = set(choice.earlier)
    for name in choice.in_order:
        own = Observations()
        if name == choice.newest:
            for kind, row in read(name, lambda _: True):
                take(own, kind, row)
            found.partitions += leaders.rows()
        else:
            wanted = _OF_CHOSEN if name in chosen else _OF_OTHERS
            for kind, row in read(name, wanted):
                if kind in ("partition", "setting"):
                    take(own, kind, row)
                elif name in chosen:
                    for each in earlier_rows(kind, row):
                        take(own, *each)
            leaders.note(own.partitions)
            own.partitions = []
        found.add(own)
    listed = {group for listing in found.listings for group in listing.groups}
    _add_standing(found, [*found.known_groups, *listed], choice, chosen, read)
    for name in choice.failed:
        for kind, row in read(name, lambda _: True):
            if kind == "unasked":
                found.unasked.append(failed_row(row))
            elif kind == KNOWN:
                take(found, kind, row)
    return found


def _add_standing(
    found: Observations, known: Sequence[str], choice: Choice, chosen: set[str], read: Reader
) -> None:
    """Where groups stood when they could last be asked, if that is longer ago than what was looked at."""
    missing = standing(found.committed, known)
    for name in reversed(choice.in_order):
        if not missing:
            return
        if name in chosen or name == choice.newest:
            continue
        rows = [row for _, row in read(name, _starts("committed")) if row.group in missing]
        kept_rows = [each for row in rows for _, each in earlier_rows("committed", row)]
        found.committed += kept_rows
        missing -= {row.group for row in kept_rows}


def _starts(*kinds: str) -> Callable[[str], bool]:
    beginnings = tuple(f'["{kind}",' for kind in kinds)
    return lambda line: line.startswith(beginnings)


_OF_CHOSEN = _starts(*OF_EARLIER, "partition", "setting")


def _OF_OTHERS(line: str) -> bool:  # noqa: N802 - a condition, as the one that is made.
    return line.startswith((f'["partition",{{"topic":"{OFFSETS_TOPIC}",', '["setting",'))


def _seen(listing: Listing) -> str:
    return f"an earlier survey ({_moment(listing.at)})" if listing.at is not None else "an earlier survey"


def _moment(at: Instant) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
