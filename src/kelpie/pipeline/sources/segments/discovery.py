"""Segments among the files of an inventory: of which partition each is, and whose disk it was on."""

from collections.abc import Iterable, Mapping

from kelpie.evidence.segments import Segment, describe_segment
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.sources.inventory import Item
from kelpie.pipeline.sources.segments.files import SegmentFile


def described(items: Iterable[Item], disks: Mapping[str, int]) -> list[tuple[Item, Segment]]:
    """What the paths of segments tell. `disks`: which folder is of which broker."""
    return [(item, describe_segment(item.file, disks)) for item in items]


def of_offsets_topic(found: Iterable[tuple[Item, Segment]], cluster: str) -> list[SegmentFile]:
    """To be read: those that are known to be of a partition of the offsets topic."""
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
        for item, segment in found
        if segment.topic == OFFSETS_TOPIC and segment.partition >= 0
    ]
