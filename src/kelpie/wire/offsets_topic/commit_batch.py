"""A batch with what one group committed by one request, read as columns: all its records at once.

Such records have the same length, and the same bytes but for their place in the batch, the partition, the
offset, the leader epoch and the time. One format of `struct` cuts these out of all records; the other bytes
are compared. It works for uncompressed batches of commits to one topic without metadata, with values of
version 3 or 4 (Kafka 2.1 and later). For everything else, also for bytes that are broken, the answer is None:
then the records are read one by one. A test holds the two to the same results.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kelpie.wire.offsets_topic.plain_commit import place_of, read_plain_commit
from kelpie.wire.schema import NO_UUID

_ONE_BYTE = 0x80
"""Numbers in a record take one byte below this. They are twice what is meant; odd ones are negative."""
_IN_ORDER = tuple(range(0, _ONE_BYTE, 2))
"""The places of records in a batch from which nothing was removed."""
_MIDDLE = {3: 2, 4: 1}
"""By version of the value: the bytes that tell that there is no metadata."""
_TOPIC_ID = slice(3, 19)
"""In what follows the time: behind number, tag and length, if it is there."""
_WITH_TOPIC_ID = 20
_PARTITION = bytes(4)


class CommitColumns(NamedTuple):
    group: str
    topic: str
    partitions: tuple[int, ...]
    """One for each record; so are the next four."""
    offsets: tuple[int, ...]
    leader_epochs: tuple[int, ...]
    timestamps: tuple[int, ...]
    places: Sequence[int]
    """Where the records are, counted from the first offset of the batch."""
    topic_id: bytes


class _Layout(NamedTuple):
    """How records of one length are laid out, and what all of them have in common, whatever the group."""

    record: struct.Struct
    before_place: bytes
    key_begins: int
    """How many bytes tell the length of the key."""
    before_offset: bytes
    before_time: bytes
    behind_time: bytes
    """Without the topic id."""


class CommitBatches:
    """Reads batches. What was learned of one is used for the next."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int, int, int], _Layout | None] = {}

    def read(self, records: memoryview, count: int) -> CommitColumns | None:
        """`records`: the bytes behind the header of a batch."""
        size, rest = divmod(len(records), count)
        if rest:
            return None
        layout = self._layout(bytes(records[:size]))
        if layout is None:
            return None
        starts, places, keys, partitions, versions, offsets, epochs, middles, timestamps, ends = zip(
            *layout.record.iter_unpack(records), strict=True
        )
        if (
            any(column.count(column[0]) < count for column in (starts, keys, versions, middles, ends))
            or starts[0] != layout.before_place
            or versions[0] != layout.before_offset
            or middles[0] != layout.before_time
            or _without_id(ends[0]) != layout.behind_time
        ):
            return None
        try:
            place = place_of(keys[0][layout.key_begins :] + _PARTITION)
        except (struct.error, UnicodeDecodeError):
            return None
        if place is None:
            return None
        in_batch: Sequence[int] = range(count)
        if places != _IN_ORDER[:count]:
            if max(places) >= _ONE_BYTE or any(number & 1 for number in places):
                return None
            in_batch = [number >> 1 for number in places]
        topic_id = ends[0][_TOPIC_ID] if len(ends[0]) == _WITH_TOPIC_ID else NO_UUID
        # By C alone: the constructor of a named tuple would be a call of a Python function.
        columns = (*place, partitions, offsets, epochs, timestamps, in_batch, topic_id)
        return tuple.__new__(CommitColumns, columns)

    def _layout(self, record: bytes) -> _Layout | None:
        """Of records that are as long as this one, and so are their keys. None: read them one by one."""
        try:
            place, key, value = _cut(record)
            known = (len(record), key, value, record[value + 1])
            if known not in self._layouts:
                self._layouts[known] = _laid_out(record, place, key, value)
        except IndexError:
            return None
        return self._layouts[known]


def _cut(record: bytes) -> tuple[int, int, int]:
    """Where its place in the batch, its key and its value begin, if its times and its value are small."""
    place = 3 if record[0] < _ONE_BYTE else 4
    length = record[place + 1]
    key = place + 2
    if length >= _ONE_BYTE:
        length += (record[key] << 7) - _ONE_BYTE
        key += 1
    return place, key, key + (length >> 1) + 1


def _laid_out(record: bytes, place: int, key: int, value: int) -> _Layout | None:
    """Looks at the record closely, for all that will look like it."""
    plain = read_plain_commit(record[key : value - 1], record[value:-1])
    length = record[0] if place == 3 else record[0] + (record[1] << 7) - _ONE_BYTE
    is_whole = (
        length == 2 * (len(record) - place + 2)
        and record[value - 1] == 2 * (len(record) - value - 1)
        and record[-1] == 0  # It has no headers.
        and max(record[place - 1], record[place]) < _ONE_BYTE
        and not record[place + 1] & 1
    )
    if not is_whole or plain is None or plain.metadata:
        return None
    middle = _MIDDLE[record[value + 1]]
    time = value + 14 + middle
    between, rest = value - place - 6, len(record) - time - 8
    return _Layout(
        struct.Struct(f">{place}sB{between}si3sqi{middle}sq{rest}s"),
        record[:place],
        key - place - 1,
        record[value - 1 : value + 2],
        record[value + 14 : time],
        _without_id(record[time + 8 :]),
    )


def _without_id(end: bytes) -> bytes:
    return end[:3] + end[-1:] if len(end) == _WITH_TOPIC_ID else end
