"""The types of columns, as Arrow has them; Spark, Delta and Parquet know the same."""

import pyarrow as pa

BINARY = pa.binary()
BOOLEAN = pa.bool_()
BYTE = pa.int8()
DATE = pa.date32()
DOUBLE = pa.float64()
INT = pa.int32()
LONG = pa.int64()
MOMENT = pa.timestamp("us", tz="UTC")
SHORT = pa.int16()
STRING = pa.string()
STRINGS = pa.list_(STRING)
LABELS = pa.map_(STRING, STRING)
