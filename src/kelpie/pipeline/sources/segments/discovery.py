"""Segments among the files of an inventory: the partition of each, and the broker of its disk."""

from collections.abc import Iterable, Mapping

from kelpie.evidence.segments import Segment, describe_segment
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.sources.segments.files import SegmentFile


def described(items: Iterable[Item], disks: Mapping[str, int]) -> list[tuple[Item, Segment]]:
    """What the paths of segments say. `disks`: brokers by folder."""
    return [(item, describe_segment(item.file, disks)) for item in items]


def of_offsets_topic(segments: Iterable[tuple[Item, Segment]], cluster: str) -> list[SegmentFile]:
    """The files that belong to a known partition of the offsets topic."""
    return [
        SegmentFile(
            str(item.file.path),
            cluster,
            segment.partition,
            segment.broker,
            item.file.size,
            item.file.name,
            item.path,
        )
        for item, segment in segments
        if segment.topic == OFFSETS_TOPIC and segment.partition >= 0
    ]
