"""Round trips of what brokers store about groups and transactions."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.wire import consumer_protocol, offsets_topic, transaction_state
from kelpie.wire.malformed import Malformed, Unencodable
from kelpie.wire.offsets_topic import _READ
from kelpie.wire.schema import declaration_of
from tests.wire.messages import messages


@pytest.mark.parametrize("record_type", _READ)
@given(data=st.data())
def test_records_of_the_offsets_topic_come_back_as_written(record_type: int, data: st.DataObject) -> None:
    """Loading is replay: what was written must be what is read."""
    key_class, value_class = _READ[record_type]
    key = data.draw(messages(key_class, 0))
    assert offsets_topic.decode_key(offsets_topic.encode_key(key)) == (record_type, key)
    known = declaration_of(value_class).versions
    version = data.draw(st.integers(known.first, known.last))
    value = data.draw(messages(value_class, version))
    assert offsets_topic.decode_value(record_type, offsets_topic.encode_value(value, version)) == value


@given(data=st.data(), version=st.integers(0, 3))
def test_consumer_blobs_come_back_as_written(data: st.DataObject, version: int) -> None:
    """Versions 0 to 3, as clients of all ages send them."""
    subscription = data.draw(messages(consumer_protocol.Subscription, version))
    blob = consumer_protocol.encode(subscription, version)
    assert consumer_protocol.decode_subscription(blob) == (version, subscription)


@given(data=st.data(), version=st.integers(0, 1))
def test_transaction_records_come_back_as_written(data: st.DataObject, version: int) -> None:
    """Hanging transactions are told from these."""
    value = data.draw(messages(transaction_state.TransactionLogValue, version))
    assert transaction_state.decode_value(transaction_state.encode_value(value, version)) == value
    key = transaction_state.TransactionLogKey(transactional_id="tx")
    assert transaction_state.decode_key(transaction_state.encode_key(key)) == key


@pytest.mark.parametrize(
    ("record_type", "raw", "reason"),
    [
        (1, "00", "too few"),
        (1, "0009 00", "version 9 of OffsetCommitValue is unknown"),
        (1, "0003 0000", "8 bytes are needed"),
        (8, "0000 0000", "Kafka 3.7"),
    ],
)
def test_a_value_that_cannot_be_read_says_why(record_type: int, raw: str, reason: str) -> None:
    """Quarantine is useless without a reason."""
    with pytest.raises(Malformed, match=reason):
        offsets_topic.decode_value(record_type, bytes.fromhex(raw))


def test_a_tombstone_is_no_value() -> None:
    """A deleted offset is an answer, not an error."""
    assert offsets_topic.decode_value(1, None) is None
    assert transaction_state.decode_value(None) is None


@pytest.mark.parametrize("decode", [offsets_topic.decode_key, transaction_state.decode_key])
def test_a_record_without_a_key_is_refused(decode: Callable[[bytes | None], object]) -> None:
    """Both topics are compacted: such a record is damage."""
    with pytest.raises(Malformed, match="without a key"):
        decode(None)


def test_only_keys_can_be_written_as_keys() -> None:
    """A mix-up must not reach the log."""
    with pytest.raises(Unencodable, match="no key"):
        offsets_topic.encode_key(consumer_protocol.Subscription(topics=[]))
