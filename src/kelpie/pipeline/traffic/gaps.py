"""attribution_gap: from when to when a broker counted traffic of a partition to no group, and why."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kelpie.cluster.mappings import MappingHistory, Vanished
from kelpie.model.time import Instant
from kelpie.model.words import first_of
from kelpie.pipeline.tables.moments import instant
from kelpie.pipeline.traffic.growth import AMBIGUOUS, AMOUNTS, Numbers, codes, combined
from kelpie.pipeline.traffic.verdicts import APPORTIONED, EXACT, UNKNOWN, Attributed

_NAMES = 3
_NEVER = -1
_NOBODY = (
    "No group is known that had the partition assigned or committed its offsets at this time: a consumer "
    "calls assign() without a group, or evidence is missing, or the times of the scrapes are not known."
)
_SIDES = ("broker", "topic", "partition", "label")
Row = dict[str, Any]


class _Facts(NamedTuple):
    """What `why` needs of a gap and a row of attribution_gap does not have."""

    after_restart: bool
    has_labels: bool


class Gap(NamedTuple):
    """A gap that may go on."""

    row: Row
    facts: _Facts


def gaps(deltas: pa.Table, attributed: Attributed) -> list[Gap]:
    """`deltas`: rows of unattributed_traffic; `attributed`: what became of them."""
    deltas = deltas.combine_chunks()
    sides = [codes(deltas[side])[0] for side in _SIDES]
    side = combined(tuple(sides), tuple(int(each.max(initial=0)) + 1 for each in sides))
    began = deltas["began"].cast(pa.int64()).fill_null(_NEVER).to_numpy()
    ended = deltas["ended"].cast(pa.int64()).to_numpy()
    order = np.lexsort((ended, side))
    begins = np.ones(len(order), bool)
    begins[1:] = (
        (side[order[1:]] != side[order[:-1]])
        | (began[order[1:]] > ended[order[:-1]])
        | (began[order[1:]] == _NEVER)
        | (began[order[:-1]] == _NEVER)
    )
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(begins) - 1
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(order))[: len(firsts)] - 1
    rows = deltas.take(pa.array(order[firsts])).to_pylist()
    ends = deltas["ended"].take(pa.array(order[lasts])).to_pylist()
    sums = {
        name: np.add.reduceat(deltas[name].to_numpy()[order], firsts) if len(firsts) else firsts
        for name in AMOUNTS
    } | _verdicts(attributed, number, len(firsts))
    groups = _groups(attributed, number, len(firsts))
    return [
        Gap(
            {side: row[side] for side in (*_SIDES, "began")}
            | {"ended": ends[place], "groups": groups[place]}
            | {name: int(each[place]) for name, each in sums.items()},
            _Facts(row["after_restart"], row["has_labels"]),
        )
        for place, row in enumerate(rows)
    ]


def _verdicts(attributed: Attributed, number: Numbers, count: int) -> dict[str, Numbers]:
    """Messages of each gap, by how their groups are known."""
    verdict, names = codes(attributed.rows["how"])
    messages = attributed.rows["messages"].to_numpy()
    sums = {how: np.zeros(count, np.int64) for how in (EXACT, APPORTIONED, UNKNOWN)}
    for place, how in enumerate(names):
        mine = np.flatnonzero(verdict == place)
        np.add.at(sums[how], number[attributed.of_delta[mine]], messages[mine])
    return sums


def _groups(attributed: Attributed, number: Numbers, count: int) -> list[list[str]]:
    """The groups that each gap was given to."""
    column = attributed.rows["group"]
    known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    group, names = codes(column.take(pa.array(known)))
    pairs = np.unique(number[attributed.of_delta[known]] * max(1, len(names)) + group)
    groups: list[list[str]] = [[] for _ in range(count)]
    for pair in pairs.tolist():
        groups[pair // len(names)].append(names[pair % len(names)])
    return groups


def joined(pieces: Iterable[Gap]) -> list[Gap]:
    """Gaps of one partition that follow each other are one."""
    ordered = sorted(
        pieces,
        key=lambda piece: (
            *(piece.row[side] for side in _SIDES),
            piece.row["ended"],
            piece.row["began"] is not None,
        ),
    )
    together: list[Gap] = []
    for piece in ordered:
        if together and _goes_on(together[-1].row, piece.row):
            _extend(together[-1].row, piece.row)
        else:
            together.append(piece)
    return together


def _goes_on(gap: Row, piece: Row) -> bool:
    same = all(gap[side] == piece[side] for side in _SIDES)
    return same and piece["began"] is not None and piece["began"] <= gap["ended"] and gap["began"] is not None


def _extend(gap: Row, piece: Row) -> None:
    gap["ended"] = piece["ended"]
    for name in (*AMOUNTS, EXACT, APPORTIONED, UNKNOWN):
        gap[name] += piece[name]
    gap["groups"] += [group for group in piece["groups"] if group not in gap["groups"]]


def explained(gap: Gap, mappings: MappingHistory) -> Row:
    """The row of attribution_gap."""
    return {**gap.row, "groups": sorted(gap.row["groups"]), "why": _why(gap, mappings)}


def _why(gap: Gap, mappings: MappingHistory) -> str:
    row, facts = gap
    if row["label"] == AMBIGUOUS:
        return "Several groups have consumers with the same host and client id that may fetch this partition."
    if not facts.has_labels:
        return (
            "The broker names no group in any series: kopEnableGroupLevelConsumerMetrics is false, or every "
            "group was lost."
        )
    if row["began"] is None:
        return (
            "It was counted before the first scrape of this broker: nothing tells when, and by whose fetch."
        )
    groups: list[str] = row["groups"]
    parts = [_of_node(group, instant(row["began"]), mappings) for group in sorted(groups)]
    said = [part for part in parts if part]
    if facts.after_restart:
        said.insert(
            0,
            "The broker was started again, so all connections are new, and each looks its group up anew.",
        )
    if said:
        return " ".join(said)
    if groups:
        return (
            f"The broker did not know the group of the connection; {first_of(sorted(groups), _NAMES)} had "
            "the partition, or committed its offsets, and no mapping tree was seen that tells more."
        )
    gone = list(mappings.vanished)
    if len(gone) > _NAMES:
        return f"{_NOBODY} {len(gone)} nodes of the mapping tree are gone in later listings of it."
    return " ".join([_NOBODY, *map(_vanished, gone)])


def _of_node(group: str, at: Instant | None, mappings: MappingHistory) -> str:
    """What listings of the mapping tree say of a group's nodes."""
    if not mappings.is_known:
        return ""
    gone = next((each for each in mappings.vanished if each.node.group == group), None)
    if gone is not None:
        return _vanished(gone)
    listed = mappings.at(at)
    if any(node.group == group for each in listed for node in each.nodes.values()):
        return (
            f"A node of the mapping tree names {group}, so the connection looked it up before the node was "
            "there, or the node is that of another member."
        )
    sources = first_of([each.listing.source for each in listed], _NAMES)
    return f"The mapping tree had no node that names {group} ({sources})."


def _vanished(gone: Vanished) -> str:
    node = gone.node
    return (
        f"The node {node.path} named {node.group} ({node.source}) and is gone ({gone.gone.listing.source}): "
        "the connection that had asked for the coordinator was closed, and a fetch on a new connection "
        "found no group."
    )
