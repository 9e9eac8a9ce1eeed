"""How many messages, bytes and entries lie in the records of a Fetch or Produce. An entry is a batch."""

from kelpie.attribution.counters import Amount
from kelpie.wire.records import BatchHeader, Codec, RecordBatch, read_batches

FROM_THE_BEGINNING = -1


def amount_of(records: bytes | memoryview, first: int = FROM_THE_BEGINNING) -> Amount:
    """What is in them from the offset `first` on: a fetch gets whole batches, and skips what is before it.

    Markers of transactions are entries without messages. The beginning of a batch that was cut off does not
    count.
    """
    messages = size = entries = 0
    for batch in read_batches(records, crc=False):
        entries += 1
        size += batch.size
        messages += _messages(batch, first)
    return Amount(messages, size, entries)


def _messages(batch: RecordBatch, first: int) -> int:
    header = batch.header
    if header.is_control:
        return 0
    if isinstance(header, BatchHeader):
        if header.base_offset >= first:
            return header.record_count
        if header.record_count == header.last_offset_delta + 1:
            return max(0, header.record_count - (first - header.base_offset))
    elif header.codec is Codec.NONE:
        return int(header.offset >= first)
    # A compacted batch has gaps, and a wrapper does not tell how many messages are in it.
    return sum(record.offset >= first for record in batch.records())
