from typing import NamedTuple

from kelpie.wire.records.attributes import NO_TIMESTAMP, TimestampType

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record, with its absolute offset.

    Timestamps are milliseconds since 1970, or -1 for none. Under log-append time a record's timestamp is that
    of its batch. Magic 0 has no timestamps, and only magic 2 has headers.
    """

    # A named tuple and no frozen dataclass: millions of these are made, and making one costs a third.
    offset: int
    timestamp: int = NO_TIMESTAMP
    timestamp_type: TimestampType = TimestampType.CREATE
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
