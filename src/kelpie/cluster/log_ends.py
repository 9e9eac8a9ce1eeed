"""Where a log ended over time, as surveys, tools and look-backs say."""

from collections.abc import Iterable, Iterator

from kelpie.observations import LogEnds
from kelpie.observations.positions import NO_OFFSET


def ends_over_time(rows: Iterable[LogEnds]) -> tuple[LogEnds, ...]:
    """By time, those with the end of the log.

    The answer to "where did the log end an hour ago?" proves nothing if it is the first record of the log:
    what was there then may have been deleted since. Tools print no last stable offset: if two surveys before
    saw the same one, it counts.
    """
    rows = tuple(rows)
    begin = next((end.earliest for end in reversed(rows) if end.earliest != NO_OFFSET and not end.error), 0)
    ends = [
        end
        for end in rows
        if not end.error
        and end.latest != NO_OFFSET
        and not (end.earliest == NO_OFFSET and begin > 0 and end.latest <= begin)
    ]
    return tuple(_held(sorted(ends, key=lambda end: end.at or 0)))


def _held(ends: Iterable[LogEnds]) -> Iterator[LogEnds]:
    """Fills in the last stable offset where a row lacks it and the two rows before had the same one."""
    last: LogEnds | None = None
    is_held = False
    for end in ends:
        if end.stable != NO_OFFSET:
            is_held = last is not None and last.stable == end.stable < last.latest
            last = end
        elif is_held and last is not None:
            yield end._replace(stable=last.stable)
            continue
        yield end
