"""What is written reads back the same, by us and by kafka-python, in both directions."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.wire.malformed import Unencodable
from kelpie.wire.records import (
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    read_all_records,
    read_batches,
    write_batch,
    write_message_set,
)
from tests.wire.records import oracle
from tests.wire.records.strategies import MAGICS_AND_CODECS, T, records

EVERY = pytest.mark.parametrize(("magic", "codec"), MAGICS_AND_CODECS)
# kafka-python needs a package of its own for the wrong checksum in the LZ4 of magic 0.
KAFKA_PYTHONS = pytest.mark.parametrize(
    ("magic", "codec"), [pair for pair in MAGICS_AND_CODECS if pair != (0, Codec.LZ4)]
)


@pytest.fixture(autouse=True, scope="module")
def _kafka_python_has_its_codecs() -> Iterator[None]:
    with oracle.with_codecs():
        yield


def written(made: list[Record], magic: int, codec: Codec, append_time: int | None = None) -> bytes:
    if magic == 2:
        return write_batch(made, codec=codec, log_append_time_ms=append_time)
    return write_message_set(made, magic=magic, codec=codec, log_append_time_ms=append_time)


@EVERY
def test_records_read_back_as_they_were_written(magic: int, codec: Codec) -> None:
    """Offsets with gaps, timestamps in any order, null and empty keys and values."""

    @settings(max_examples=60, deadline=None)
    @given(records(magic))
    def check(made: list[Record]) -> None:
        assert list(read_all_records(written(made, magic, codec))) == made

    check()


@pytest.mark.parametrize(
    ("magic", "codec"), [(magic, codec) for magic, codec in MAGICS_AND_CODECS if magic > 0]
)
def test_log_append_time_replaces_every_timestamp(magic: int, codec: Codec) -> None:
    """The time of the batch is the time of its records."""

    @settings(max_examples=30, deadline=None)
    @given(records(magic), st.integers(0, 2**62))
    def check(made: list[Record], time: int) -> None:
        stamped = [r._replace(timestamp=time, timestamp_type=TimestampType.LOG_APPEND) for r in made]
        assert list(read_all_records(written(made, magic, codec, time))) == stamped

    check()


@KAFKA_PYTHONS
def test_kafka_python_reads_what_is_written_here(magic: int, codec: Codec) -> None:
    """Another reader must find the same records, offsets and timestamps."""

    @settings(max_examples=40, deadline=None)
    @given(records(magic))
    def check(made: list[Record]) -> None:
        assert oracle.read(written(made, magic, codec)) == made

    check()


@KAFKA_PYTHONS
def test_what_kafka_python_writes_is_read_here(magic: int, codec: Codec) -> None:
    """Another writer's batches, as a producer sends them: with offsets from 0."""

    @settings(max_examples=40, deadline=None)
    @given(records(magic, gaps=False))
    def check(made: list[Record]) -> None:
        produced = [record._replace(offset=i) for i, record in enumerate(made)]
        assert list(read_all_records(oracle.write(produced, magic, codec))) == produced

    check()


@settings(max_examples=60, deadline=None)
@given(
    records(),
    st.fixed_dictionaries(
        {
            "codec": st.sampled_from(Codec),
            "leader_epoch": st.integers(-1, 2**31 - 1),
            "producer_id": st.integers(0, 2**62),
            "producer_epoch": st.integers(0, 2**15 - 1),
            "base_sequence": st.integers(0, 2**31 - 1),
            "transactional": st.booleans(),
        }
    ),
)
def test_producer_and_leader_read_back_as_they_were_written(
    made: list[Record], given_: dict[str, Any]
) -> None:
    """What fences producers and leaders is in the header, not in the records."""
    (batch,) = read_batches(write_batch(made, **given_))
    header = batch.header
    assert isinstance(header, BatchHeader)
    assert given_ == {
        "codec": header.codec,
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
    }
    assert header.record_count == len(made)
    assert header.max_timestamp == max(record.timestamp for record in made)
    assert list(batch.records()) == made


@EVERY
def test_the_same_records_make_the_same_bytes(magic: int, codec: Codec) -> None:
    """A seed must replay to the byte; Python's gzip would put the time of day into them."""
    made = [Record(i, T + i, key=b"k" * i, value=b"v" * 100) for i in range(50)]
    assert written(made, magic, codec) == written(made, magic, codec)


@pytest.mark.parametrize(
    "write",
    [
        lambda: write_batch([]),
        lambda: write_batch([Record(0), Record(2**31)]),
        lambda: write_batch([Record(5), Record(4)]),
        lambda: write_batch([Record(0, -1), Record(1, 2**63 - 1)]),
        lambda: write_batch([Record(0)], producer_epoch=2**15),
        lambda: write_message_set([Record(0)], magic=2),
        lambda: write_message_set([Record(0)], magic=1, codec=Codec.ZSTD),
        lambda: write_message_set([Record(0)], magic=0, log_append_time_ms=1),
        lambda: write_message_set([Record(0, headers=(("a", b"b"),))], magic=1),
        lambda: write_message_set([], magic=1, codec=Codec.GZIP),
        lambda: write_message_set([Record(2**63)], magic=1),
    ],
)
def test_what_a_batch_cannot_hold_is_not_written(write: object) -> None:
    """A defect of the caller is told at once, and no half-right batch reaches a log."""
    assert callable(write)
    with pytest.raises(Unencodable):
        write()
