"""Segments of the offsets topic to columns, in compiled code: numba reads bytes, pyarrow holds columns.

checksums  CRC-32 and CRC-32C over a part of an array
entries    walks a range of a segment: batches and old messages, each checked; what is broken is told
interning  names to codes: a string that comes a million times is stored once
records    from batches to records, from records to offset commits
columns    from arrays to Arrow tables
segment    a file, or a range of one, to tables: one door to this package
pairs      keys and values, which came over the network, to the same tables; answers to Fetch to such pairs

Nothing here knows Spark. Everything is bounded by the bytes that come in: no length that a file states is
trusted before it is compared with what is there.
"""
