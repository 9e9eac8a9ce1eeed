"""Record batches: how Kafka keeps and sends records, from magic 0 to 2, with every codec.

To read, go through `read_batches`, and ask each batch for its `records`. To write, `write_batch` (magic 2),
`write_message_set` (0 and 1) and `write_control_batch`. To append what a producer sent, `examine_produced`,
then `stamp`. Bytes that are not what they should be raise `kelpie.wire.malformed.Malformed`, and nothing
else.
"""

from kelpie.wire.records.attributes import Codec, TimestampType
from kelpie.wire.records.batches import RecordBatch, TornBatch, read_all_records, read_batches
from kelpie.wire.records.compression import INFLATED_LIMIT
from kelpie.wire.records.control import ControlRecord, ControlType, parse_control_record
from kelpie.wire.records.header import BatchHeader, parse_header
from kelpie.wire.records.message_set import MessageHeader, parse_message_header
from kelpie.wire.records.produced import LARGEST_BATCH, Produced, RecordsRefused, examine_produced, stamp
from kelpie.wire.records.record import Headers, Record
from kelpie.wire.records.writer import write_batch, write_control_batch, write_message_set

__all__ = [
    "INFLATED_LIMIT",
    "LARGEST_BATCH",
    "BatchHeader",
    "Codec",
    "ControlRecord",
    "ControlType",
    "Headers",
    "MessageHeader",
    "Produced",
    "Record",
    "RecordBatch",
    "RecordsRefused",
    "TimestampType",
    "TornBatch",
    "examine_produced",
    "parse_control_record",
    "parse_header",
    "parse_message_header",
    "read_all_records",
    "read_batches",
    "stamp",
    "write_batch",
    "write_control_batch",
    "write_message_set",
]
