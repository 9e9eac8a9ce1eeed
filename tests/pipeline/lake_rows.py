"""All rows of all tables of a lake, to compare two of them."""

from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.places import Place


def all_rows(tables: Place, cluster: str) -> dict[str, list[str]]:
    """By table; in an order that says nothing of how they were written."""
    lake = Lake(tables, read_only=True)
    return {name: sorted(map(repr, lake.rows(table, cluster).to_pylist())) for name, table in TABLES.items()}
