"""All that can be observed of groups, of a fleet and over months, as tables: the data pipeline on Spark."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kelpie.pipeline.commit_offsets import CommitOffsets
    from kelpie.pipeline.sources.segments.data_source import OffsetsSegments

__all__ = ["CommitOffsets", "OffsetsSegments"]


def __getattr__(name: str) -> Any:
    """Found when it is asked for: parts of this package do without Spark, which takes a second to load."""
    if name == "CommitOffsets":
        from kelpie.pipeline.commit_offsets import CommitOffsets  # noqa: PLC0415 - see above.

        return CommitOffsets
    if name == "OffsetsSegments":
        from kelpie.pipeline.sources.segments.data_source import OffsetsSegments  # noqa: PLC0415 - see above.

        return OffsetsSegments
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
