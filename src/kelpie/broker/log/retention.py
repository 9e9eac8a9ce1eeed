"""Which segments are too old, or too many (UnifiedLog.deleteOldSegments).

Each rule takes segments from the beginning of the log until it meets one that it would keep. None goes beyond
the high watermark. The active segment goes too, if the rule is broken by all of it.
"""

from collections.abc import Callable

from kelpie.broker.log.config import LogConfig
from kelpie.broker.log.segments import LogSegment, Segments
from kelpie.model.time import Instant

Rule = Callable[[LogSegment, int | None], bool]
"""Of a segment and the base offset of the next one: must it go?"""


def before_start(start_offset: int) -> Rule:
    return lambda _, next_base: next_base is not None and next_base <= start_offset


def too_large(size: int, config: LogConfig) -> Rule | None:
    if config.retention_bytes < 0 or size < config.retention_bytes:
        return None
    surplus = size - config.retention_bytes

    def rule(segment: LogSegment, _: int | None) -> bool:
        nonlocal surplus
        surplus -= segment.size
        return surplus >= 0

    return rule


def too_old(now: Instant, config: LogConfig) -> Rule | None:
    if config.retention_ms < 0:
        return None
    return lambda segment, _: now - segment.largest_timestamp > config.retention_ms


def count_deletable(segments: Segments, rule: Rule, *, end_offset: int, high_watermark: int) -> int:
    count = 0
    for index, segment in enumerate(segments):
        next_base = segments.at(index + 1).base_offset if index + 1 < len(segments) else None
        upper = end_offset if next_base is None else next_base
        if high_watermark < upper or (next_base is None and not segment.batches):
            break
        if not rule(segment, next_base):
            break
        count += 1
    return count
