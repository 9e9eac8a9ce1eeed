"""The two readers of magic 2: compiled, and in Python."""

import os
import random
import subprocess
import sys

import cramjam
import pytest
from hypothesis import given, settings

from kelpie.wire.malformed import Malformed
from kelpie.wire.records import Codec, Record, read_all_records, write_batch, write_message_set
from kelpie.wire.records import record_batch as reader
from kelpie.wire.records.compression import compress
from kelpie.wire.records.frames import lz4_with_kafka_09_checksum, lz4_with_right_checksum
from kelpie.wire.records.message_set import parse_message_header
from tests.wire.records.batch_bytes import kafkas_own, plain, with_right_crc
from tests.wire.records.strategies import T, records


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_Compiled", None)


def both(data: bytes) -> tuple[list[Record] | str, list[Record] | str]:
    results: list[list[Record] | str] = []
    with pytest.MonkeyPatch.context() as patch:
        for compiled in (reader._Compiled, None):
            patch.setattr(reader, "_Compiled", compiled)
            try:
                results.append(list(read_all_records(data)))
            except Malformed as malformed:
                results.append(str(malformed))
    compiled_result, python_result = results
    return compiled_result, python_result


def test_the_compiled_reader_is_in_use() -> None:
    """Where the extension is there, it must not be lost unnoticed: it is many times as fast."""
    assert reader._Compiled is not None


@settings(max_examples=100, deadline=None)
@given(records())
def test_both_readers_find_the_same(made: list[Record]) -> None:
    """A user without the extension sees the same records, only later."""
    assert both(write_batch(made)) == (made, made)


def test_both_readers_agree_on_broken_batches() -> None:
    """What the compiled one cannot read, the other explains; what it reads, the other reads alike.

    But for two things that no Kafka writes. The compiled reader takes numbers of six bytes and more where
    there may be five, and a record's attributes, one byte that is always 0, for such a number as well.
    """
    chance = random.Random(3)
    size = 13
    seed = write_batch([Record(i, T, key=b"k", value=b"v", headers=(("h", b"x"),)) for i in range(5)])
    assert len(seed) == 61 + 5 * size
    places = [at for at in range(61, len(seed)) if (at - 61) % size != 1]
    agreed = 0
    for _ in range(5000):
        data = bytearray(seed)
        for _ in range(chance.choice((1, 2, 3))):
            data[chance.choice(places)] = chance.choice((chance.randrange(256), 0, 1, 0x80, 0xFF))
        compiled, in_python = both(with_right_crc(data))
        agreed += compiled == in_python
        assert compiled == in_python or "more than 32 bits" in in_python
    assert agreed > 4950


@pytest.mark.usefixtures("in_python")
def test_the_reader_in_python_reads_kafkas_own_batches() -> None:
    """It is the one that explains, so it must be right on its own."""
    for name, data in kafkas_own().items():
        assert list(read_all_records(data)) or name in ("commit", "abort", "empty")


def test_a_header_key_that_is_not_utf_8_reads_as_it_does_in_java() -> None:
    """Kafka never looks at it, so such records exist; the compiled reader stumbles over them."""
    made = [Record(i, T, value=b"v", headers=(("kkk", b"x"),)) for i in range(3)]
    data = write_batch(made).replace(b"kkk", b"k\xffk")
    found = list(read_all_records(with_right_crc(data)))
    assert found == [record._replace(headers=(("k\ufffdk", b"x"),)) for record in made]


def test_timestamps_of_minus_one_stay_what_they_are() -> None:
    """It means "none"; aiokafka's builder takes it for "not set yet", its reader for no timestamp type."""
    made = [Record(0, -1, value=b"a"), Record(1, T, value=b"b"), Record(2, -1, value=b"c")]
    assert both(write_batch(made)) == (made, made)


def test_records_are_read_and_written_where_the_extension_is_missing() -> None:
    """Platforms without a wheel and a compiler get aiokafka in plain Python."""
    script = (
        "from kelpie.wire.records import *\n"
        "from kelpie.wire.records import record_batch\n"
        "assert record_batch._Compiled is None\n"
        "made = [Record(i, 1000 + i, key=b'k', value=b'v' * i, headers=(('h', None),)) for i in range(50)]\n"
        "for codec in Codec:\n"
        "    data = write_batch(made, codec=codec)\n"
        "    assert list(read_all_records(data)) == made\n"
        "    assert isinstance(examine_produced(data), Produced)\n"
        "print(write_batch(made).hex())\n"
    )
    environment = {**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = [Record(i, 1000 + i, key=b"k", value=b"v" * i, headers=(("h", None),)) for i in range(50)]
    assert done.stdout.strip() == write_batch(made).hex()


def test_the_lz4_of_magic_0_has_the_checksum_that_kafka_0_9_expects() -> None:
    """Old brokers refuse the right one, LZ4's own library refuses theirs."""
    entry = kafkas_own()["magic-0-lz4"]
    frame = entry[26:]
    assert parse_message_header(entry).codec is Codec.LZ4
    with pytest.raises(cramjam.DecompressionError):
        cramjam.lz4.decompress(frame)
    right = lz4_with_right_checksum(memoryview(frame), 0)
    assert lz4_with_kafka_09_checksum(right) == frame
    ours = write_message_set(plain(3), magic=0, codec=Codec.LZ4)
    with pytest.raises(cramjam.DecompressionError):
        cramjam.lz4.decompress(ours[26:])
    assert compress(Codec.LZ4, b"x", magic=1) == lz4_with_right_checksum(
        memoryview(compress(Codec.LZ4, b"x", magic=0)), 0
    )
