"""The reader of whole batches of commits says what reading record by record says, or nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.commit_batch import CommitBatches, CommitColumns
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.offsets_topic.plain_commit import read_plain_commit
from kelpie.wire.records import BatchHeader, Record, read_batches
from kelpie.wire.records.header import HEADER_SIZE
from kelpie.wire.records.writer import write_batch
from kelpie.wire.schema import NO_UUID

ID = bytes(range(16))
AT = 1_700_000_000_000


def _record(
    place: int, *, group: str = "billing", topic: str = "orders", version: int = 4, **fields: object
) -> Record:
    said = {"leader_epoch": 3, "metadata": "", "commit_timestamp": AT, "topic_id": ID, **fields}
    if version < 4:
        said["topic_id"] = NO_UUID
    key = OffsetCommitKey(group=group, topic=topic, partition=9 - place)
    value = OffsetCommitValue(offset=2**40 + place, **said)  # type: ignore[arg-type]
    return Record(
        offset=100 + place,
        timestamp=AT,
        key=offsets_topic.encode_key(key),
        value=offsets_topic.encode_value(value, version),
    )


def _read(records: Sequence[Record], reader: CommitBatches | None = None) -> CommitColumns | None:
    (batch,) = read_batches(write_batch(list(records)))
    return (reader or CommitBatches()).read(batch.data[HEADER_SIZE:], len(records))


def _agrees(columns: CommitColumns, raw: bytes) -> bool:
    (batch,) = read_batches(raw, crc=False)
    assert isinstance(batch.header, BatchHeader)
    base = batch.header.base_offset
    plain = []
    for record in batch.records():
        read = read_plain_commit(record.key, record.value)
        assert read is not None
        plain.append((record.offset, *read))
    rows = zip(
        columns.places,
        columns.partitions,
        columns.offsets,
        columns.leader_epochs,
        columns.timestamps,
        strict=True,
    )
    said = [
        (base + place, columns.group, columns.topic, partition, offset, epoch, "", at, columns.topic_id)
        for place, partition, offset, epoch, at in rows
    ]
    return said == plain


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("topic_id", [NO_UUID, ID])
@pytest.mark.parametrize("group", ["g", "billing-é", "a" * 200])
@pytest.mark.parametrize("places", [[0], [0, 1, 2, 3], [0, 2, 7]])
def test_ordinary_batches_are_read_at_once(
    version: int, topic_id: bytes, group: str, places: list[int]
) -> None:
    """If they were not, reading would be right, and slow. Compaction leaves gaps."""
    records = [_record(place, group=group, version=version, topic_id=topic_id) for place in places]
    columns = _read(records)
    assert columns is not None
    assert _agrees(columns, write_batch(records))


def test_groups_with_names_of_the_same_length_share_what_was_learned() -> None:
    """The names of group and topic are read anew for each batch."""
    reader = CommitBatches()
    for group, topic in (("one", "orders"), ("two", "orders"), ("t", "or-ders2")):
        columns = _read([_record(place, group=group, topic=topic) for place in range(3)], reader)
        assert columns is not None
        assert (columns.group, columns.topic) == (group, topic)


@pytest.mark.parametrize(
    "records",
    [
        [_record(0), _record(1, group="another")],
        [_record(0), _record(1, group="billinG")],
        [_record(0), _record(1, topic="orderS")],
        [_record(0), _record(1, metadata="m")],
        [_record(0), _record(1, topic_id=bytes(16)[:15] + b"x")],
        [_record(0), _record(1, version=3)],
        [_record(0, metadata="m"), _record(1, metadata="m")],
        [_record(0), _record(1)._replace(value=None)],
        [_record(0), _record(100)],
    ],
    ids=[
        "group",
        "same length",
        "topic",
        "metadata",
        "id",
        "version",
        "all metadata",
        "tombstone",
        "far apart",
    ],
)
def test_other_batches_are_left_to_be_read_one_by_one(records: list[Record]) -> None:
    """Their records differ in more than numbers."""
    assert _read(records) is None


@given(data=st.data())
def test_broken_bytes_are_never_read_otherwise(data: st.DataObject) -> None:
    """Whatever byte of a batch is another one: what is said, reading one by one says, too."""
    count = data.draw(st.integers(1, 4))
    raw = bytearray(write_batch([_record(place) for place in range(count)]))
    at = data.draw(st.integers(HEADER_SIZE, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    columns = CommitBatches().read(memoryview(raw)[HEADER_SIZE:], count)
    assert columns is None or _agrees(columns, bytes(raw))
