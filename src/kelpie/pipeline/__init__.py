"""All that can be observed of groups, of a fleet and over months, as tables: the data pipeline on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kelpie.pipeline.commit_offsets import CommitOffsets
    from kelpie.pipeline.query_views import duckdb_views, views
    from kelpie.pipeline.sources.segments.data_source import OffsetsSegments

__all__ = ["CommitOffsets", "OffsetsSegments", "duckdb_views", "views"]
_HOMES = {
    "CommitOffsets": "commit_offsets",
    "OffsetsSegments": "sources.segments.data_source",
    "duckdb_views": "query_views",
    "views": "query_views",
}


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: parts of this package do without Spark, which takes a second to load."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
