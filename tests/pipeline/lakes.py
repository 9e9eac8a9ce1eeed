"""Small tables that tests write row by row, without Spark."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kelpie.model.time import Instant
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def at(ms: Instant) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def a_lake(folder: Path, rows: Rows, cluster: str = "main") -> Lake:
    """`rows`: by table; columns that a row leaves out are null."""
    lake = Lake(folder)
    for name, some in rows.items():
        given = [{"cluster": cluster, **row} for row in some]
        lake.append_rows(TABLES[name], cluster, given, application=f"{name} {cluster}", version=1)
    return lake
