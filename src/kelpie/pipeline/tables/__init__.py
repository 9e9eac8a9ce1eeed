"""The tables: declared once, here. Spark schemas, Delta tables and docs/tables.md follow from it.

bronze  what was observed, as it was; append only; a row names its source
silver  what follows from it: intervals, generations, rebalances, lag
gold    what people ask for: health, outages, losses, findings
state   what rounds leave for the next one (`rounds`); not in TABLES, which are what people read

A table evolves by new columns that may be null, at its end: readers of the old ones go on. Columns are never
renamed, dropped or given another type.
"""

from kelpie.pipeline.tables.bronze import BRONZE
from kelpie.pipeline.tables.gold import GOLD
from kelpie.pipeline.tables.silver import SILVER
from kelpie.pipeline.tables.state import STATE
from kelpie.pipeline.tables.table import Column, LakeTable

TABLES: dict[str, LakeTable] = {table.name: table for table in (*BRONZE, *SILVER, *GOLD)}
STORED = TABLES | STATE
"""Also what only rounds read."""

__all__ = ["BRONZE", "GOLD", "SILVER", "STATE", "STORED", "TABLES", "Column", "LakeTable"]
