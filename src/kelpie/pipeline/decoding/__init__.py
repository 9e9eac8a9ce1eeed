"""Segments of the offsets topic to columns, in compiled code: numba reads bytes, pyarrow holds columns.

checksums  CRC-32 and CRC-32C over a part of an array
entries    walks a segment: batches and old messages, each checked; reports what is broken
records    from batches to records, from records to offset commits
columns    from arrays to Arrow tables
segment    a file to tables: the entry point of this package
pairs      keys and values from the network to the same tables; responses to Fetch to such pairs

Nothing here knows Spark. Everything is bounded by the bytes that come in: no length that a file states is
trusted before it is compared with what is there.
"""
