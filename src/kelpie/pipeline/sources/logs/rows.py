"""Rows of logs as columns: as read, completed by what the whole file tells, and as Arrow."""

import json
import uuid
from collections.abc import Sequence
from itertools import chain, compress
from typing import Any

import pyarrow as pa

from kelpie.evidence.logs.attribution import NAMES_ITS_GROUP
from kelpie.evidence.logs.pauses import BACK, with_pauses
from kelpie.observations import Event, EventKind
from kelpie.observations.events import FACTS
from kelpie.pipeline.sources.logs.parts import Known
from kelpie.pipeline.sources.logs.reader import Row
from kelpie.pipeline.tables import TABLES
from kelpie.places import place_of

EVENTS = TABLES["log_event"]
Columns = dict[str, list[Any]]
"""Columns of `log_event`, and `float` and `once`, which are needed until the rows are complete."""
_OF_PAUSES = frozenset(kind.value for kind in (*BACK, EventKind.POLL_INTERVAL_EXCEEDED))
_LEVELS = dict(zip("01234567", ("FATAL", *["ERROR"] * 3, "WARN", "INFO", "INFO", "DEBUG"), strict=True))
"""librdkafka's are those of syslog."""
_NAMES_ITS_GROUP = {kind.value: kind.value.startswith(NAMES_ITS_GROUP) for kind in EventKind}
_KINDS = {kind.value: kind for kind in EventKind}
_JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_NUMBERS = ("node", "partition", "offset", "generation", "error")
_NONE = type(None)
_TYPES: dict[str, set[type]] = {
    **{name: {str, _NONE} for name in ("level", *FACTS)},
    **{name: {int, _NONE} for name in ("at", "float", "once", *_NUMBERS)},
    **{key: {int} for key in ("line", "part")},
    **{key: {str} for key in ("kind", "text", "reason", "of details")},
    "details": {dict},
}
"""What the columns hold, and the mappings in `details`."""


def columns_of(rows: Sequence[Row]) -> Columns:
    """Rows as they were read."""
    columns: Columns = {
        "at": [None if row.stamp is None else row.stamp.at for row in rows],
        "float": [None if row.stamp is None else row.stamp.float for row in rows],
        "line": [row.line for row in rows],
        "kind": [row.kind.value for row in rows],
        "level": [_LEVELS.get(row.level, row.level) or None for row in rows],
        "details": [row.details for row in rows],
        "text": [row.text for row in rows],
        "part": [row.part for row in rows],
        "once": [row.once for row in rows],
    }
    fields = [row.fields for row in rows]
    for name in FACTS:
        columns[name] = [of_row.get(name) for of_row in fields]
    columns["reason"] = [reason or "" for reason in columns["reason"]]
    return columns


def text_of(rows: Columns) -> str:
    """Rows as JSON, in ASCII, so that any text comes back as it was, also one with lone surrogates."""
    return _JSON.encode(rows)


def rows_in(text: str) -> Columns:
    """Rows that were written as JSON. Raises ValueError where they are of other types than declared."""
    try:
        rows: Columns = json.loads(text)
        kinds = {name: set(map(type, values)) for name, values in rows.items()}
        kinds["of details"] = set(map(type, chain.from_iterable(map(dict.values, rows["details"]))))
        lengths = set(map(len, rows.values()))
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"these are no rows of a log: {error}") from None
    if kinds.keys() != _TYPES.keys() or len(lengths) > 1:
        raise ValueError("these are no rows of a log: columns are missing, or of different lengths")
    for name, allowed in _TYPES.items():
        if kinds[name] - allowed:
            raise ValueError(f"these are no rows of a log: {name} has values of another type")
    return rows


def stage(rows: Columns, folder: str) -> str:
    """Writes rows to a new file, for another task."""
    path = place_of(folder) / f"{uuid.uuid4()}.rows"
    path.write_text(text_of(rows), encoding="ascii")
    return str(path)


def staged(path: str) -> Columns:
    """Raises OSError, ValueError."""
    return rows_in(place_of(path).read_text(encoding="ascii"))


def rows_of_line(rows: Columns, line: int) -> Columns:
    return _only(rows, [number == line for number in rows["line"]])


def settled(rows: Columns, known: Known, source: str) -> Columns:
    """Completes rows by what only the whole file, or all files together, tell."""
    if known.repeated:
        rows = _only(rows, [node not in known.repeated for node in rows["once"]])
    rows = dict(rows)
    rows["line"] = [line + known.lines_before for line in rows["line"]]
    if known.offset:
        offset = known.offset
        rows["at"] = [
            None if at is None else at + offset.get(kind, 0)
            for at, kind in zip(rows["at"], rows["float"], strict=True)
        ]
    _attribute(rows, known)
    _tell_pauses(rows, known)
    if known.shift_ms is None:
        rows["at"] = [None] * len(rows["at"])
    elif known.shift_ms:
        rows["at"] = [None if at is None else at + known.shift_ms for at in rows["at"]]
    if known.named is not None:
        for place in _ungrouped(rows):
            _give(rows, place, known.named, f"the name of {source}")
    return rows


def as_table(rows: Columns) -> pa.Table:
    """The columns of `log_event`, without those that are the same in all rows."""
    rows = {
        **rows,
        "at": [None if at is None else at * 1000 for at in rows["at"]],
        "details": [list(details.items()) for details in rows["details"]],
    }
    columns = [column for column in EVENTS.in_files if column.name in rows]
    arrays = [_array(rows[column.name], column.type) for column in columns]
    return pa.table(arrays, names=[column.name for column in columns])


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _only(rows: Columns, kept: Sequence[bool]) -> Columns:
    return {name: list(compress(values, kept)) for name, values in rows.items()}


def _ungrouped(rows: Columns) -> list[int]:
    both = zip(rows["group"], rows["kind"], strict=True)
    return [place for place, (group, kind) in enumerate(both) if group is None and not _NAMES_ITS_GROUP[kind]]


def _attribute(rows: Columns, known: Known) -> None:
    """`Groups.attribute`, for rows of a part."""
    for place in _ungrouped(rows):
        client = rows["details"][place].get("instance") or rows["client_id"][place] or ""
        group = known.of_client.get(client)
        if group is not None:
            _give(rows, place, group, f"other lines of {client}")
        elif known.only is not None:
            _give(rows, place, *known.only)


def _give(rows: Columns, place: int, group: str, evidence: str) -> None:
    rows["group"][place] = group
    rows["details"][place] = {**rows["details"][place], "group_from": evidence}


def _tell_pauses(rows: Columns, known: Known) -> None:
    if EventKind.POLL_INTERVAL_EXCEEDED.value not in rows["kind"]:
        return
    places = [place for place, kind in enumerate(rows["kind"]) if kind in _OF_PAUSES]
    events = [
        Event(
            _KINDS[rows["kind"][place]],
            rows["at"][place],
            "",
            "",
            group=rows["group"][place],
            client_id=rows["client_id"][place],
            details=rows["details"][place],
        )
        for place in places
    ]
    for place, event in zip(places, with_pauses(events, known.limits, known.later), strict=True):
        rows["details"][place] = event.details
