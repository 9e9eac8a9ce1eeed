"""Whether a group makes progress, by its own rhythm: what the rules stalled and stopped share."""

from enum import Enum

from kelpie.doctor.case import Case
from kelpie.doctor.positions import NOISE, Rhythm, Track, lag
from kelpie.model.time import Instant

SURE_MS = 60_000
"""A shorter silence may be a large batch or a restart, and gets a lower severity."""


class PositionProgress(Enum):
    READ_ALL = "read all"
    """There is nothing to read beyond doubt."""
    MOVES = "moves"
    WAITS = "waits"
    """There is something to read, but not for long enough to mean anything."""
    NONE = "none"
    """Something has been waiting for longer than the group usually takes, and nothing moved."""
    UNKNOWN = "unknown"
    NO_ENDS = "no ends"


def progress_of(way: Track, pace: Rhythm) -> PositionProgress:
    behind = way.is_behind
    if behind is None:
        return PositionProgress.NO_ENDS
    if not behind:
        return PositionProgress.READ_ALL
    since = way.unread_since
    if since is not None and way.now - since >= pace.patience_ms:
        return PositionProgress.NONE
    moved = way.read_at
    if moved is not None and way.now - moved < pace.patience_ms:
        return PositionProgress.MOVES
    was_clear = _last_read_all(way)
    if was_clear is not None and way.now - was_clear < pace.patience_ms:
        return PositionProgress.WAITS
    return PositionProgress.UNKNOWN


def _last_read_all(way: Track) -> Instant | None:
    """The last time at which the rows show that nothing was left to read."""
    since = way.standing_since
    for end in reversed(way.ends):
        if (
            end.at is not None
            and since is not None
            and end.at >= since
            and (lag(way.offset, end) or 0) <= NOISE
        ):
            return end.at
    return None


def tracks_of(case: Case) -> list[Track]:
    """The ways through all partitions that the group reads and has committed in.

    Not those whose offset the coordinator would not tell: a commit is under way there (KLP307).
    """
    names = [
        name for name in case.reads.partitions if (row := case.committed.get(name)) is None or not row.error
    ]
    return [way for name in names if (way := case.track(name)).offset >= 0]


def silence_ms(case: Case, pace: Rhythm) -> int | None:
    """How long it has committed nothing at all. None: its history was not read."""
    last = pace.last if pace.last is not None else case.history_from
    return None if last is None else max(0, case.cluster.now - last)


def is_silent(case: Case, pace: Rhythm) -> bool:
    """Nothing was committed for longer than usual, and such a pause is not usual either."""
    silence = silence_ms(case, pace)
    return silence is not None and silence >= pace.patience_ms and not pace.has_paused_for(silence)
