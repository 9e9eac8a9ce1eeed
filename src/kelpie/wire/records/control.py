"""Control records: records that brokers write among those of clients, such as the end of a transaction.

Their keys must not be taken for keys of records: 0000 0001 is "version 0, COMMIT" here, and would begin an
offset commit of the oldest kind in the offsets topic. So a batch returns them separately
(`RecordBatch.control_records`).
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from kelpie.wire.malformed import Malformed
from kelpie.wire.records.record import Record

KEY = struct.Struct(">hh")
END_TRANSACTION = struct.Struct(">hi")


class ControlType(IntEnum):
    """Kafka's ControlRecordType. The ones from 2 on are those of KRaft's metadata log."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True)
class ControlRecord:
    offset: int
    timestamp: int
    version: int
    """The version of the key."""
    type_id: int
    coordinator_epoch: int | None
    """Of ABORT and COMMIT: the epoch of the transaction coordinator that wrote the marker."""
    value: bytes | None

    @property
    def type(self) -> ControlType:
        """UNKNOWN for a type that a newer Kafka has added."""
        try:
            return ControlType(self.type_id)
        except ValueError:
            return ControlType.UNKNOWN


def parse_control_record(record: Record, *, where: int = 0) -> ControlRecord:
    """Read a record of a control batch. `where` is the batch's position, for messages."""
    if record.key is None or len(record.key) < KEY.size:
        raise Malformed("a control record without a whole key", offset=where, path="key")
    version, type_id = KEY.unpack_from(record.key)
    if version < 0:
        raise Malformed(f"a control record of version {version}", offset=where, path="key")
    epoch = None
    if type_id in (ControlType.ABORT, ControlType.COMMIT):
        if record.value is None or len(record.value) < END_TRANSACTION.size:
            raise Malformed("a transaction marker without a whole value", offset=where, path="value")
        # Newer versions append fields; Kafka reads the ones it knows, and so do we.
        value_version, epoch = END_TRANSACTION.unpack_from(record.value)
        if value_version < 0:
            raise Malformed(f"a transaction marker of version {value_version}", offset=where, path="value")
    return ControlRecord(record.offset, record.timestamp, version, type_id, epoch, record.value)
