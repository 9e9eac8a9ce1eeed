"""What is kept of a survey once there is a newer one. The store, `kelpie collect`'s snapshots and the
pipeline's tables all follow this definition.

The newest survey counts in full. Of an earlier one only these rows count:

- addresses of brokers, but not whether they were alive: each survey finds that out anew
- the names of the groups that were listed
- states of groups, committed offsets and ends of logs, unless the broker answered with an error
- of groups whose coordinator answered that it still loads, or that it is not their coordinator: that answer,
  so that the next survey knows since when
- who led the offsets topic
- the ids of topics that were there

Not every earlier survey counts: `kept` chooses some by age.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.model.time import Instant, utc
from kelpie.observations.cluster import OFFSETS_TOPIC, BrokerView, CoordinatorAnswer, PartitionView
from kelpie.observations.collection import Observations
from kelpie.observations.encoding import KINDS, KNOWN, add, extend, read_columns, rows_by_kind, write_columns
from kelpie.observations.group_offsets import GroupOffsets, as_data, by_group, from_data
from kelpie.observations.groups import KnownGroup
from kelpie.observations.positions import Committed

EARLIER_KINDS = ("broker", "listing", "answer", "state", "committed", "ends", "topic", KNOWN)
"""Kinds of rows of which something counts."""
EARLIER_SURVEY = "an earlier survey"
DESCRIBE_GROUPS = "DescribeGroups"
"""The question of which a state is the answer."""

_OFFSETS = "offsets"
"""In packed surveys: committed offsets by group. They may also be rows of kind "committed"."""
_OF_ONE_SURVEY = ("answer", "state", "ends", "topic")
"""Committed offsets are another such kind, but for their number."""
_SAME = ("at", "source")
"""Fields in which all rows of one survey are alike."""
_KEPT_ERRORS = frozenset({int(ErrorCode.NONE), int(ErrorCode.UNSTABLE_OFFSET_COMMIT)})
"""The second is normal for a moment. An earlier survey that has it, too, shows that it lasts."""
_LASTING_ERRORS = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
"""Of coordinators: normal for a moment, and not for long."""
_JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_MINUTE = 60_000
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
ONE_SURVEY_MS = 2 * _MINUTE
"""No survey takes longer."""
AGES_MS = (20_000, _MINUTE, 7 * _MINUTE, 30 * _MINUTE, 3 * _HOUR, _DAY, 7 * _DAY)
"""Of each span between these ages, the oldest survey is kept, and none beyond the last."""
_LATELY_MS = 30 * _MINUTE
"""Of spans before that, the newest survey is kept, too. While somebody watches, the oldest one of a span may
be from before a fault until it leaves the span; the newest one then proves that the fault has lasted: for a
minute, or for the 6 min after which what began with a deployment would be over.
"""


LARGEST_SURVEY = 1 << 30
"""Bytes of JSON."""


class Unpackable(Exception):
    """The bytes are not a packed survey."""


def kept(surveyed_at: Iterable[Instant], now: Instant) -> set[Instant]:
    """The times of the surveys to keep."""
    oldest: dict[int, Instant] = {}
    newest: dict[int, Instant] = {}
    last: Instant | None = None
    for at in sorted(surveyed_at):
        span = next((number for number, age in enumerate(AGES_MS) if now - at < age), None)
        if span is not None:
            last = at
            oldest.setdefault(span, at)
            if AGES_MS[span] <= _LATELY_MS:
                newest[span] = at
    return {*oldest.values(), *newest.values(), *([last] if last is not None else [])}


def earlier_rows(kind: str, row: Any) -> Iterator[tuple[str, Any]]:
    """What counts of one row of an earlier survey."""
    if kind == "broker" and row.host:
        yield kind, BrokerView(row.node_id, row.host, row.port, at=row.at, source=row.source)
    elif kind == "listing":
        yield from ((KNOWN, KnownGroup(group, seen_in_survey(row.at))) for group in row.groups)
    elif kind == "state" and row.error in _LASTING_ERRORS:
        yield (
            "answer",
            CoordinatorAnswer(
                row.group, DESCRIBE_GROUPS, row.error, row.coordinator, at=row.at, source=row.source
            ),
        )
    elif (
        kind == KNOWN
        or (kind == "answer" and row.asked == DESCRIBE_GROUPS and row.error in _LASTING_ERRORS)
        or (kind in ("state", "topic") and not row.error)
        or (kind == "committed" and row.error in _KEPT_ERRORS)
        or (kind == "ends" and not row.error and row.latest >= 0 and row.earliest >= 0)
    ):
        yield kind, row


def seen_in_survey(at: Instant | None) -> str:
    """Where a group is known from that only an earlier survey saw."""
    return EARLIER_SURVEY if at is None else f"{EARLIER_SURVEY} ({minute(at)})"


def minute(at: Instant) -> str:
    """When a survey was made, as people need it: "2026-11-16 21:23 UTC"."""
    return f"{utc(at):%Y-%m-%d %H:%M} UTC"


def best_views(views: Iterable[PartitionView]) -> dict[int, PartitionView]:
    """By partition of the offsets topic: of the brokers' views the one of the newest leader epoch.

    Kafka before 2.1 tells no leader epochs, and 0.9 leaves out dead replicas: there the view with most
    replicas counts.
    """
    best: dict[int, PartitionView] = {}
    for view in views:
        if view.topic == OFFSETS_TOPIC and view.partition >= 0 and view.told_by is not None:
            known = best.get(view.partition)
            if known is None or _weight(view) > _weight(known):
                best[view.partition] = view
    return dict(sorted(best.items()))


def _weight(view: PartitionView) -> tuple[int, int, bool, int]:
    return view.leader_epoch, len(view.replicas), view.leader == view.told_by, -(view.told_by or 0)


def is_of_survey(row_at: Instant | None, at: Instant) -> bool:
    """Whether a row was seen by the survey made at this time, and not by one before."""
    return row_at is not None and abs(at - row_at) < ONE_SURVEY_MS


def earlier_survey(survey: Observations, at: Instant) -> Observations:
    """What counts of the survey made at this time, without names of groups. Older rows are left out."""
    kept_rows = Observations(
        committed=_committed_then(survey.committed, at),
        group_offsets=[row for row in survey.group_offsets if is_of_survey(row.at, at)],
    )
    others = replace(survey, commits=[], committed=[], group_commits=[], group_offsets=[])
    for kind, rows in rows_by_kind(others):
        if kind == "broker" or kind in _OF_ONE_SURVEY:
            for row in rows:
                if kind == "broker" or is_of_survey(row.at, at):
                    for each in earlier_rows(kind, row):
                        add(kept_rows, *each)
    by_address = {(broker.node_id, broker.host, broker.port): broker for broker in kept_rows.brokers}
    kept_rows.brokers = [broker for _, broker in sorted(by_address.items())]
    kept_rows.topics = list({row.topic: row._replace(told_by=None) for row in kept_rows.topics}.values())
    views = best_views(view for view in survey.partitions if is_of_survey(view.at, at))
    kept_rows.partitions = [view._replace(told_by=None) for view in views.values()]
    return kept_rows


def _committed_then(rows: Iterable[Committed], at: Instant) -> list[Committed]:
    """What `earlier_rows` says of committed offsets, for 100,000s of them."""
    first, last = at - ONE_SURVEY_MS, at + ONE_SURVEY_MS
    return [row for row in rows if row.error in _KEPT_ERRORS and row.at is not None and first < row.at < last]


def pack(rows: Iterable[tuple[str, list[Any]]], offsets: Sequence[GroupOffsets] = ()) -> bytes:
    """Rows of one survey by kind, as compressed JSON: kind → field → one value per row.

    Time and source are left out: `unpack` gives all rows the same. By column it is smaller than by row, and
    much faster to read. Committed offsets are written by group, with those that are given so.
    """
    columns: dict[str, Any] = {}
    for kind, of_kind in rows:
        others = of_kind
        if kind == "committed":
            told, others = by_group(of_kind)
            offsets = [*offsets, *told]
        if others:
            columns[kind] = write_columns(KINDS[kind], others, without=_SAME)
    if offsets:
        columns[_OFFSETS] = as_data(offsets)
    return zlib.compress(_JSON.encode(columns).encode("ascii"), 1)


def unpack(packed: bytes, at: Instant) -> Observations:
    """Packed rows, with the time of their survey. Raises Unpackable."""
    return unpack_by_group(packed, at).by_partition()


def unpack_by_group(packed: bytes, at: Instant) -> Observations:
    """The same, with committed offsets by group: they are `group_offsets`."""
    same = {"at": repeat(at), "source": repeat(EARLIER_SURVEY)}
    try:
        inflater = zlib.decompressobj()
        data = inflater.decompress(packed, LARGEST_SURVEY)
        if not inflater.eof:
            raise Unpackable("it is torn, or too large")
        rows = Observations()
        for kind, columns in json.loads(data).items():
            if kind == _OFFSETS:
                rows.group_offsets = from_data(columns, at, EARLIER_SURVEY)
            else:
                extend(rows, kind, read_columns(KINDS[kind], columns, same))
    except (AttributeError, LookupError, TypeError, ValueError, zlib.error) as error:
        raise Unpackable(str(error)) from None
    return rows
