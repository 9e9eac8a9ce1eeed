"""How much lies in the records of a fetch."""

import pytest

from kelpie.attribution.counters import Amount
from kelpie.broker.amounts import amount_of
from kelpie.wire.records import (
    Codec,
    ControlType,
    Record,
    write_batch,
    write_control_batch,
    write_message_set,
)


def _records(first: int, count: int) -> list[Record]:
    return [Record(first + at, 1_700_000_000_000, key=None, value=b"x") for at in range(count)]


def test_messages_bytes_and_entries_are_counted() -> None:
    """An entry is a batch; bytes are those of whole batches."""
    data = write_batch(_records(0, 3)) + write_batch(_records(3, 2))
    assert amount_of(data) == Amount(5, len(data), 2)


def test_messages_before_the_offset_do_not_count() -> None:
    """A fetch in the middle of a batch gets all of it, and the client skips what it has."""
    data = write_batch(_records(0, 10)) + write_batch(_records(10, 10))
    assert amount_of(data, 4).messages == 16
    assert amount_of(data, 20).messages == 0


def test_a_compacted_batch_is_counted_exactly() -> None:
    """It has gaps: the number of records is not the difference of offsets."""
    data = write_batch([record for record in _records(0, 10) if record.offset % 3 == 0])
    assert amount_of(data).messages == 4
    assert amount_of(data, 4).messages == 2


def test_a_marker_is_no_message() -> None:
    """Consumers never see it."""
    marker = write_control_batch(
        ControlType.COMMIT, offset=0, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=1
    )
    assert amount_of(marker) == Amount(0, len(marker), 1)


def test_what_was_cut_off_does_not_count() -> None:
    """Old versions of Fetch cut the answer at its size."""
    whole = write_batch(_records(0, 3))
    assert amount_of(whole + write_batch(_records(3, 2))[:-5]) == Amount(3, len(whole), 1)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_old_message_sets_are_counted(codec: Codec) -> None:
    """Consumers of Kafka 0.9 read them: one by one, or in a wrapper."""
    data = write_message_set(_records(5, 4), magic=1, codec=codec)
    assert amount_of(data, 6).messages == 3
