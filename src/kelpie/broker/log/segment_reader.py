"""Reads: the batch is found by bisection, what follows is a slice, and nothing is copied but references."""

from bisect import bisect_left, bisect_right

from kelpie.broker.log.batch import ReadResult, StoredBatch
from kelpie.broker.log.segments import Segments


def read_segment(
    segments: Segments, offset: int, max_bytes: int, *, upto: int, at_least_one: bool, cut: bool
) -> ReadResult:
    """Read from one segment, as Kafka does."""
    located = segments.locate(offset) if offset < upto else None
    if located is None:
        return ReadResult(offset)
    which, first = located
    segment = segments.at(which)
    ends = segment.ends
    last = bisect_left(segment.last_offsets, upto, first)
    before = ends[first - 1] if first else 0
    fit = bisect_right(ends, before + max_bytes, first, last)
    if fit == first and at_least_one and first < last:
        fit = first + 1
    tail = b""
    if cut and fit < last:
        room = before + max_bytes - (ends[fit - 1] if fit > first else before)
        tail = segment.batches[fit].data[: max(0, room)]
    return ReadResult(offset, segment.batches[first:fit], tail)


def batches_from(
    segments: Segments, offset: int, max_bytes: int | None, upto: int | None
) -> list[StoredBatch]:
    """Read across segments, for a replica that takes the batches as they are."""
    batches: list[StoredBatch] = []
    located = segments.locate(offset)
    if located is None:
        return batches
    which, first = located
    room = max_bytes
    for index in range(which, len(segments)):
        segment = segments.at(index)
        last = len(segment.batches)
        if upto is not None:
            last = bisect_left(segment.last_offsets, upto, first)
        fit = last
        if room is not None:
            before = segment.ends[first - 1] if first else 0
            fit = bisect_right(segment.ends, before + room, first, last)
            if not batches and fit == first < last:
                fit = first + 1
            if fit > first:
                room -= segment.ends[fit - 1] - before
        batches += segment.batches[first:fit]
        if fit < len(segment.batches):
            break
        first = 0
    return batches
