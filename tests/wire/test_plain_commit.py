"""The quick reader of commits says what the schema says, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.wire import offsets_topic
from kelpie.wire.malformed import Malformed
from kelpie.wire.offsets_topic import RecordType, decode_key, decode_value
from kelpie.wire.offsets_topic.offset_commit import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from kelpie.wire.offsets_topic.plain_commit import PlainCommit, read_plain_commit
from kelpie.wire.schema import NO_UUID
from tests.wire.messages import messages

KEY = OffsetCommitKey(group="billing-é", topic="orders", partition=7)


def _by_schema(key: bytes, value: bytes) -> PlainCommit:
    record_type, read_key = decode_key(key)
    read = decode_value(record_type, value)
    assert record_type == RecordType.OFFSET_COMMIT
    assert read.expire_timestamp == -1
    return PlainCommit(
        read_key.group,
        read_key.topic,
        read_key.partition,
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_timestamp,
        read.topic_id,
    )


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("topic_id", [NO_UUID, bytes(range(16))])
@pytest.mark.parametrize("metadata", ["", "m", "é" * 60])
def test_ordinary_commits_are_read_by_position(version: int, topic_id: bytes, metadata: str) -> None:
    """If they were not, reading would be right, and slow."""
    value = OffsetCommitValue(
        offset=2**40,
        leader_epoch=3,
        metadata=metadata,
        commit_timestamp=1_700_000_000_000,
        topic_id=topic_id if version == 4 else NO_UUID,
    )
    key, written = offsets_topic.encode_key(KEY), offsets_topic.encode_value(value, version)
    assert read_plain_commit(key, written) == _by_schema(key, written)


@given(data=st.data(), version=st.integers(0, 4))
def test_it_never_says_anything_else_than_the_schema(data: st.DataObject, version: int) -> None:
    """For any commit that can be written, and for such bytes with any one of them changed or cut off."""
    key = offsets_topic.encode_key(data.draw(messages(OffsetCommitKey, 0)))
    value = offsets_topic.encode_value(data.draw(messages(OffsetCommitValue, version)), version)
    _compare(key, value)
    _compare(data.draw(_broken(key)), value)
    _compare(key, data.draw(_broken(value)))


def _broken(whole: bytes) -> st.SearchStrategy[bytes]:
    at = st.integers(0, len(whole) - 1)
    return st.one_of(
        st.builds(lambda at, to: whole[:at] + bytes([to]) + whole[at + 1 :], at, st.integers(0, 255)),
        st.builds(lambda at: whole[:at], at),
        st.builds(lambda more: whole + more, st.binary(min_size=1, max_size=3)),
    )


def _compare(key: bytes, value: bytes) -> None:
    plain = read_plain_commit(key, value)
    if plain is not None:
        try:
            assert plain == _by_schema(key, value)
        except Malformed as error:
            pytest.fail(f"the schema refuses {key.hex()} {value.hex()}: {error}")


def test_what_is_no_plain_commit_is_left_to_the_schema() -> None:
    """Tombstones, other records, long metadata, the keys of 0.8.2."""
    key = offsets_topic.encode_key(KEY)
    old = OffsetCommitValue(offset=1, metadata="", commit_timestamp=5, expire_timestamp=9)
    long = OffsetCommitValue(offset=1, leader_epoch=0, metadata="m" * 200, commit_timestamp=5)
    legacy = offsets_topic.encode_key(LegacyOffsetCommitKey(group="g", topic="t", partition=0))
    assert read_plain_commit(key, None) is None
    assert read_plain_commit(None, b"") is None
    assert read_plain_commit(key, offsets_topic.encode_value(old, 1)) is None
    assert read_plain_commit(key, offsets_topic.encode_value(long, 4)) is None
    assert read_plain_commit(legacy, offsets_topic.encode_value(long, 3)) is None
