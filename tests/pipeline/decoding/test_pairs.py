"""Records that came over the network: decoded as those of segments are, and only those that count."""

import gzip
import struct
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kelpie.pipeline.decoding.columns import PAIRS
from kelpie.pipeline.decoding.pairs import read_fetched, read_pairs
from kelpie.pipeline.decoding.segment import Read
from kelpie.wire.records import Codec, ControlType, Record, write_batch, write_control_batch
from tests.pipeline.decoding.test_decoding import codecs, commits, segment
from tests.pipeline.decoding.whole_segments import read_bytes
from tests.pipeline.sources.segments.segments import batches, commit
from tests.pipeline.sources.segments.test_hostile_segments import mutated, mutations, real, sealed

ALL = (1 << 63) - 1
_WHERE = ("position", "size")


def rows(read: list[Read], table: str) -> list[dict[str, Any]]:
    found = [row for it in read for row in getattr(it, table).to_pylist()]
    found.sort(key=lambda row: row["log_offset"])
    return [{name: it for name, it in row.items() if name not in _WHERE} for row in found]


def over_the_network(data: bytes, start: int = 0, stop: int = ALL) -> list[Read]:
    return list(read_pairs(read_fetched(data, (), start, stop).pairs))


@given(
    st.lists(commits, max_size=30),
    st.lists(st.tuples(st.integers(1, 9), codecs), max_size=30),
    st.integers(0, 2),
)
def test_same_rows_as_from_a_segment(
    commits: list[tuple[Any, Any]], sizes: list[tuple[int, Codec]], magic: int
) -> None:
    """Every magic, codec and version of a value; tombstones; any name."""
    data = segment(commits, sizes, magic)
    read = over_the_network(data)
    assert rows(read, "commits") == rows([read_bytes(data)], "commits")


def test_real_segments_give_the_same_rows() -> None:
    """Of Kafka 0.9 and 4.3, with records of groups."""
    for data in real():
        read = over_the_network(data)
        for table in ("commits", "others"):
            assert rows(read, table) == [
                it | ({"is_transactional": False} if table == "commits" else {})
                for it in rows([read_bytes(data)], table)
            ]


@given(st.data())
def test_whatever_came_is_bounded(data: st.DataObject) -> None:
    """Broken or hostile bytes never raise; what is sound among them is read, as from a disk."""
    raw = mutated(data.draw(st.sampled_from(real())), data.draw(mutations))
    read, expected = over_the_network(raw), read_bytes(raw)
    for table in ("commits", "others"):
        flag = {"is_transactional": False} if table == "commits" else {}
        on_disk = [repr(it | flag) for it in rows([expected], table)]
        assert sorted(map(repr, rows(read, table))) == sorted(on_disk)


def test_more_records_than_a_batch_has_room_for_do_no_harm() -> None:
    """Without headers a record is shorter than any that a broker would write."""
    tiny = struct.pack(">bbbbbb", 5 << 1, 0, 0, 0, 1, 1) * 5000
    packed = gzip.compress(tiny)
    batch = bytearray(write_batch([commit(0, 1)], last_offset=9999)[:61])
    struct.pack_into(">i", batch, 8, 61 - 12 + len(packed))
    struct.pack_into(">h", batch, 21, int(Codec.GZIP))
    struct.pack_into(">i", batch, 57, 10000)
    fetched = read_fetched(sealed(bytes(batch) + packed), (), 0, ALL)
    assert fetched.pairs.num_rows == 5000
    assert [it.reason for it in fetched.unread] == ["the record at offset 5000 makes no sense"]


def test_only_what_was_asked_for() -> None:
    """A broker answers with whole batches, and cuts the last one off where it must."""
    data = write_batch([commit(number, number) for number in range(10)]) + batches(10, 5)
    fetched = read_fetched(data + data[:100], (), 3, 12)
    assert fetched.pairs["log_offset"].to_pylist() == list(range(3, 12))
    assert (fetched.following, fetched.unread) == (15, ())
    assert read_fetched(data[:50], (), 0, ALL).following is None


def test_aborted_records_and_markers_do_not_count() -> None:
    """Two producers at a time, and one of them again after its abort."""

    def transactional(offset: int, producer: int) -> bytes:
        return write_batch(
            [commit(offset, offset)], producer_id=producer, producer_epoch=3, transactional=True
        )

    def marker(offset: int, producer: int, kind: ControlType) -> bytes:
        own = {"producer_id": producer, "producer_epoch": 3, "coordinator_epoch": 0}
        return write_control_batch(kind, offset=offset, timestamp=1, **own)

    data = (
        transactional(0, 7)
        + transactional(1, 8)
        + write_batch([commit(2, 2)])
        + marker(3, 7, ControlType.ABORT)
        + transactional(4, 7)
        + transactional(5, 8)
        + marker(6, 8, ControlType.COMMIT)
        + marker(7, 7, ControlType.COMMIT)
        + transactional(8, 8)
        + marker(9, 8, ControlType.ABORT)
    )
    fetched = read_fetched(data, [(7, 0), (8, 8)], 0, ALL)
    assert fetched.pairs["log_offset"].to_pylist() == [1, 2, 4, 5]
    assert fetched.pairs["producer_id"].to_pylist() == [8, None, 7, 8]
    (read,) = read_pairs(fetched.pairs)
    assert read.commits["producer_epoch"].to_pylist() == [3, None, 3, 3]
    assert set(read.commits["is_transactional"].to_pylist()) == {False}


def test_nulls_and_slices_of_columns() -> None:
    """As Spark hands them over: in pieces, and with nulls anywhere."""
    whole = read_fetched(batches(0, 6), (), 0, ALL).pairs
    odd = pa.Table.from_pylist(
        [
            {"log_offset": 6, "key": None, "value": b"v", "written": None},
            {"log_offset": 7, "key": b"\0\2\0\1g", "value": None},
            {"log_offset": 8, "key": b"", "value": b""},
        ],
        PAIRS,
    )
    pieces = pa.concat_tables([whole.slice(2, 3), odd.slice(0, 2), whole.slice(5), odd.slice(2)])
    read = list(read_pairs(pieces))
    assert [row["log_offset"] for row in rows(read, "commits")] == [2, 3, 4, 5]
    assert [row["offset"] for row in rows(read, "commits")] == [20, 30, 40, 50]
    assert [(row["log_offset"], row["value"]) for row in rows(read, "others")] == [(7, None)]
    assert sorted(it.position for each in read for it in each.unread) == [6, 8]
    assert not list(read_pairs(PAIRS.empty_table()))


def test_a_record_of_one_batch_is_itself() -> None:
    """Headers and times are those of the record."""
    record = Record(4, 1234, key=b"\0\1\0\1g\0\1t\0\0\0\5", value=None)
    fetched = read_fetched(write_batch([record], leader_epoch=9, log_append_time_ms=2000), (), 0, ALL)
    (row,) = fetched.pairs.to_pylist()
    assert (row["log_epoch"], row["written"].timestamp(), row["value"]) == (9, 2.0, None)
    (read,) = read_pairs(fetched.pairs)
    assert rows([read], "commits")[0] | {"offset": None, "partition": 5} == rows([read], "commits")[0]
