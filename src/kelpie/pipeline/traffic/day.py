"""What a task is told of one day, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kelpie.pipeline.storage.parquet import NewFile

Written = dict[str, list[NewFile]]
"""New files by table."""


@dataclass(frozen=True, slots=True)
class Day:
    """One day of one cluster."""

    cluster: str
    day: str
    folders: Mapping[str, str]
    """Of the tables, by name."""
    files: Sequence[str] = ()
    """What it is made of: samples, or unattributed deltas."""
    before: Sequence[Sequence[str]] = ()
    """Files of traffic_closing to go on from, day by day, the latest first."""
    midnight: tuple[Sequence[str], Sequence[str]] = ((), ())
    """The last scrapes of the day, and the first ones of the next day: files of both tables."""
    evidence: str = ""
    """The folder with all evidence."""
    places: pa.Table | None = None
    """What evidence counts for it."""
