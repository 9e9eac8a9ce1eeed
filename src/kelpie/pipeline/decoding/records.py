"""From entries to records, and from records of the offsets topic to commits.

Commits (key types 0 and 1) are decoded here to the last field; other records keep the places of key and
value, for they are few. A record or a value that makes no sense is MALFORMED, and reading goes on: entries
have checksums, so that means a writer who errs and not a broken disk.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kelpie.pipeline.decoding.compiled import byte, compiled, int16, int32, int64, put64
from kelpie.pipeline.decoding.entries import APPEND_TIME_BIT, CONTROL_BIT, SMALLEST_RECORD, TRANSACTIONAL_BIT

RECORD = np.dtype(
    [
        ("entry", np.int64),
        ("kind", np.int64),
        ("version", np.int64),
        ("log_offset", np.int64),
        ("written", np.int64),
        ("key", np.int64),
        ("key_size", np.int64),
        ("value", np.int64),
        ("value_size", np.int64),
    ]
)
"""A record that is no commit. `key` and `value` are places in the data."""
COMMIT, OTHER, CONTROL, MALFORMED, SENSELESS = range(5)
"""Kinds. `version` is the key's type of OTHER, the marker's of CONTROL. SENSELESS ends an entry."""
_RECORD_SIZE = RECORD.itemsize

COLUMNS = (
    *("log_offset", "written", "group", "group_size", "topic", "topic_size", "partition"),
    *("value_version", "offset", "leader_epoch", "metadata", "metadata_size", "committed", "expires"),
    *("producer_id", "producer_epoch", "is_transactional", "log_epoch"),
)
"""Of commits; times in microseconds, texts as places in the data. A removal has NONE for all of its value."""

_FILLED, _OTHERS, _ENTRY, _AT, _PLACE = range(5)
"""The state of decoding: how many rows there are, and where it stands."""

NONE = -1
_NOTHING = tuple(np.int64(NONE) for _ in range(7))
_OTHERS_AT_ONCE = 1 << 14
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999: what is later was never a time, and nothing that reads tables could show it."""


@compiled
def _unsigned(at, end):  # type: ignore[no-untyped-def]
    """Value and where it ends; the end is −1 when there is none."""
    raw = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(70):
        part = byte(at)
        at += 1
        raw |= np.uint64(part & 0x7F) << shift
        if part < 0x80:
            return np.int64(raw), at
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@compiled
def _varint(at, end):  # type: ignore[no-untyped-def]
    """Zigzag; nearly all have one byte."""
    if at < end:
        part = byte(at)
        if part < 0x80:
            return (part >> 1) ^ -(part & 1), at + 1
    raw, at = _unsigned(at, end)
    return np.int64(np.uint64(raw) >> np.uint64(1)) ^ -(raw & 1), at


@compiled
def _moment(ms):  # type: ignore[no-untyped-def]
    return ms * 1000 if 0 <= ms <= _LAST_MS else np.int64(NONE)


@compiled
def _locate(at, end):  # type: ignore[no-untyped-def]
    """One record of a batch: where the next one begins, time and offset within the batch, key, value.

    A size of −1 is null; −1 in front: no record.
    """
    size, at = _varint(at, end)
    if at < 0 or size < 0 or size > end - at:
        return _NOTHING
    stop = at + size
    passed, at = _varint(at + 1, stop)
    if at < 0:
        return _NOTHING
    behind, at = _varint(at, stop)
    if at < 0:
        return _NOTHING
    key_size, key = _varint(at, stop)
    if key < 0 or key_size < -1 or key_size > stop - key:
        return _NOTHING
    value_size, value = _varint(key + max(key_size, 0), stop)
    if value < 0 or value_size < -1 or value_size > stop - value:
        return _NOTHING
    return stop, passed, behind, key, key_size, value, value_size


@compiled
def _locate_message(at, end):  # type: ignore[no-untyped-def]
    """The same of an old message."""
    if at + 8 > end:
        return _NOTHING
    key_size = int32(at)
    if key_size < -1 or key_size > end - at - 8:
        return _NOTHING
    value = at + 8 + max(key_size, 0)
    value_size = int32(value - 4)
    if value_size < -1 or value_size > end - value:
        return _NOTHING
    return value + max(value_size, 0), np.int64(0), np.int64(0), at + 4, key_size, value, value_size


@compiled
def _key(at, end):  # type: ignore[no-untyped-def]
    """A key of a commit, behind its type: group, topic, their sizes, partition; NONE in front: no key."""
    nothing = (np.int64(NONE), np.int64(NONE), np.int64(NONE), np.int64(NONE), np.int64(NONE))
    if at + 2 > end:
        return nothing
    group_size = int16(at)
    topic = at + 2 + group_size
    if group_size < 0 or topic + 2 > end:
        return nothing
    topic_size = int16(topic)
    if topic_size < 0 or topic + 2 + topic_size + 4 != end:
        return nothing
    return at + 2, group_size, topic + 2, topic_size, int32(topic + 2 + topic_size)


@compiled
def _value(at, end):  # type: ignore[no-untyped-def]
    """Version, offset, leader epoch, metadata with its size, commit and expiry; −1 in front: no value."""
    if at + 10 > end:
        return _NOTHING
    version, offset, epoch = int16(at), int64(at + 2), np.int64(NONE)
    at += 10
    if version < 0 or version > 4:
        return _NOTHING
    if version >= 3:
        if at + 4 > end:
            return _NOTHING
        epoch = int32(at)
        at += 4
    if version == 4:
        size, at = _unsigned(at, end)
        size -= 1
    else:
        if at + 2 > end:
            return _NOTHING
        size = int16(at)
        at += 2
    if at < 0 or size < 0 or size > end - at - (16 if version == 1 else 8):
        return _NOTHING
    expires = int64(at + size + 8) if version == 1 else np.int64(NONE)
    return version, offset, epoch, at, size, int64(at + size), expires


@compiled
def _put(at, stride, numbers):  # type: ignore[no-untyped-def]
    for number in numbers:
        put64(at, number)
        at += stride


@compiled
def _decode(base, entries, state, out, rows, rest, room, only_list):  # type: ignore[no-untyped-def]
    """Continues where `state` says, until all is read or there is no room for another row.

    `base`, `out`, `rest` are addresses; `out` has `rows` numbers for each column, `rest` `room` records.
    """
    number, at, place = state[_ENTRY], base + state[_AT], state[_PLACE]
    filled, others = state[_FILLED], state[_OTHERS]
    while number < len(entries):
        entry = entries[number]
        at, end = max(at, base + entry["begin"]), base + entry["end"]
        is_batch = entry["magic"] == 2
        is_control = is_batch and entry["attributes"] & CONTROL_BIT != 0
        is_transactional = is_batch and entry["attributes"] & TRANSACTIONAL_BIT != 0
        is_dated_by_broker = is_batch and entry["attributes"] & APPEND_TIME_BIT != 0
        while place < entry["count"] or at != end:
            if filled == rows or others == room:
                state[_ENTRY], state[_AT], state[_PLACE] = number, at - base, place
                state[_FILLED], state[_OTHERS] = filled, others
                return
            following, passed, behind, key, key_size, value, value_size = _NOTHING
            if place < entry["count"]:
                following, passed, behind, key, key_size, value, value_size = (
                    _locate(at, end) if is_batch else _locate_message(at, end)
                )
            kind, version = MALFORMED, np.int64(NONE)
            log_offset = entry["base_offset"] + behind
            moment = _moment(
                entry["max_timestamp"] if is_dated_by_broker else entry["base_timestamp"] + passed
            )
            if following < 0 or behind < 0 or behind > entry["last_delta"]:
                kind, log_offset, moment = SENSELESS, entry["base_offset"] + place, np.int64(NONE)
                key, key_size, value_size, following = at, end - at, np.int64(NONE), end
                place = entry["count"]
            elif only_list:
                kind = OTHER
            elif is_control:
                if key_size >= 4:
                    kind, version = CONTROL, int16(key + 2)
            elif key_size >= 2:
                version = int16(key)
                kind = COMMIT if 0 <= version <= 1 else OTHER
            if kind == COMMIT:
                group, group_size, topic, topic_size, partition = _key(key + 2, key + key_size)
                value_version, offset, epoch, text, text_size, committed, expires = _NOTHING
                if value_size >= 0:
                    value_version, offset, epoch, text, text_size, committed, expires = _value(
                        value, value + value_size
                    )
                if group < 0 or (value_version < 0 and value_size >= 0):
                    kind = MALFORMED
            if kind == COMMIT:
                keys = (log_offset, moment, group - base, group_size, topic - base, topic_size, partition)
                _put(out + 8 * filled, 8 * rows, keys)
                values = (value_version, offset, epoch, text - base, text_size)
                _put(out + 8 * (filled + 7 * rows), 8 * rows, values)
                times = (_moment(committed), _moment(expires), entry["producer_id"], entry["producer_epoch"])
                _put(out + 8 * (filled + 12 * rows), 8 * rows, times)
                flags = (np.int64(is_transactional), entry["leader_epoch"])
                _put(out + 8 * (filled + 16 * rows), 8 * rows, flags)
                filled += 1
            else:
                numbers_of_other = (number, kind, version, log_offset, moment)
                _put(rest + _RECORD_SIZE * others, 8, numbers_of_other)
                _put(rest + _RECORD_SIZE * others + 40, 8, (key - base, key_size, value - base, value_size))
                others += 1
            at = following
            place += 1
        number += 1
        at, place = base, 0
    state[_ENTRY], state[_AT], state[_PLACE] = number, 0, 0
    state[_FILLED], state[_OTHERS] = filled, others


def list_records(data: NDArray[np.uint8], entries: NDArray[Any]) -> NDArray[Any]:
    """All records of these entries, as they are: OTHER, or SENSELESS where an entry makes no sense."""
    pieces = [others for _, others in decode(data, entries, _OTHERS_AT_ONCE, only_list=True)]
    return np.concatenate(pieces) if pieces else np.empty(0, RECORD)


def decode(
    data: NDArray[np.uint8], entries: NDArray[Any], rows: int, *, only_list: bool = False
) -> Iterator[tuple[dict[str, NDArray[np.int64]], NDArray[Any]]]:
    """The records of these entries of `data`: columns of at most `rows` commits, and other records.

    `only_list`: all are other records, whatever they hold.
    """
    counts = np.minimum(entries["count"], (entries["end"] - entries["begin"]) // SMALLEST_RECORD + 1)
    rows = min(rows, int(counts.sum()) + 1)
    state = np.zeros(5, np.int64)
    while state[_ENTRY] < len(entries):
        out = np.empty((len(COLUMNS), rows), np.int64)
        rest = np.empty(min(rows, _OTHERS_AT_ONCE), RECORD)
        state[_FILLED] = state[_OTHERS] = 0
        places = (out.ctypes.data, rows, rest.ctypes.data, len(rest))
        _decode(data.ctypes.data, entries, state, *places, only_list)
        yield dict(zip(COLUMNS, out[:, : state[_FILLED]], strict=True)), rest[: state[_OTHERS]]
