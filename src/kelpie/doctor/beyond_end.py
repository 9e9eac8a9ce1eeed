"""Why a committed offset lies beyond the end of its log, as far as rows prove it, and where the group may go.

- Cut off: the leader says that the commit's leader epoch ends before the offset, or an earlier look saw the
  log reach it. The records up to the end of that epoch are those that the group has read. Where that is not
  known, only the beginning of the log is safe: records that replaced the lost ones may lie anywhere before
  the end.
- Never there: the commit carries no leader epoch, as those of tools do; the commit before it does, lies in
  the log, and no leader was elected since. So the log was not cut off, and the offset was wrong from the
  beginning.
- Ahead of the copy: MirrorMaker writes translated offsets to this cluster, and records follow.
"""

from dataclasses import dataclass
from enum import Enum, auto

from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence
from kelpie.doctor.position_words import evidence_of
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, LeaderEpochEnd, LogEnds
from kelpie.observations.earlier import ONE_SURVEY_MS
from kelpie.observations.mirroring import is_sign


class Cause(Enum):
    CUT_OFF = auto()
    NEVER_THERE = auto()
    AHEAD_OF_COPY = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Beyond:
    """An offset beyond the end of the log."""

    row: Committed
    end: LogEnds
    cause: Cause
    goes_to: int | None
    """The offset at which the group misses nothing. None: the beginning of the log."""
    evidence: tuple[Evidence, ...]
    since: Instant | None = None
    """Looks show that it has been so since then."""

    @property
    def missing(self) -> int:
        return self.row.offset - self.end.latest


def explained(case: Case, row: Committed, end: LogEnds) -> Beyond:
    seen = tuple(evidence_of(row, end))
    since = _since(case, row)
    signs = _mirroring(case)
    if signs and not case.members:
        return Beyond(row, end, Cause.AHEAD_OF_COPY, None, (*seen, *signs), since)
    epoch_end = epoch_end_of(case, row)
    if epoch_end is not None and 0 <= epoch_end.end < row.offset:
        text = f"{row.name}: leader epoch {epoch_end.leader_epoch} ends at {epoch_end.end}"
        to = max(epoch_end.end, end.earliest)
        return Beyond(row, end, Cause.CUT_OFF, to, (*seen, Evidence.of(epoch_end, text)), since)
    longer = next((each for each in case.track(row.name).ends if each.latest >= row.offset), None)
    if longer is not None:
        return Beyond(row, end, Cause.CUT_OFF, None, (*seen, *evidence_of(longer)), since)
    before = _commit_before(case, row, end)
    if before is not None:
        text = f"{row.name}: committed {before.offset} (leader epoch {before.leader_epoch})"
        wrong = (*seen, Evidence.of(before, text))
        return Beyond(row, end, Cause.NEVER_THERE, before.offset, wrong, since)
    return Beyond(row, end, Cause.UNKNOWN, None, seen, since)


def epoch_end_of(case: Case, row: Committed) -> LeaderEpochEnd | None:
    """Where the leader epoch of the commit ends in the log of the present leader."""
    rows = case.cluster.epoch_ends.get(row.name, ())
    return next((end for end in reversed(rows) if end.asked == row.leader_epoch and not end.error), None)


def _mirroring(case: Case) -> list[Evidence]:
    """Topics of MirrorMaker that are there."""
    views = case.cluster.known_topics.views
    found = [rows[-1] for topic, rows in sorted(views.items()) if is_sign(topic) and not rows[-1].error]
    return [
        Evidence.of(row, f"topic {row.topic} exists: MirrorMaker writes to this cluster") for row in found[:2]
    ]


def _commit_before(case: Case, row: Committed, end: LogEnds) -> Commit | None:
    """The last commit inside the log before a wrong one, if it is proven that the log was not cut off."""
    history = [commit for commit in case.commits.get(row.name, ()) if not case.is_of_old_topic(commit)]
    if not history or history[-1].offset != row.offset or row.leader_epoch >= 0:
        return None
    view = case.cluster.view(row.name)
    epoch = view.leader_epoch if view is not None else -1
    for commit in reversed(history):
        if commit.removed:
            return None
        if commit.offset <= end.latest:
            return commit if 0 <= commit.leader_epoch == epoch and commit.offset >= end.earliest else None
    return None


def _since(case: Case, row: Committed) -> Instant | None:
    """The first of the last looks, without a gap, that saw the offset beyond the end. None: only one did."""
    times: list[Instant] = []
    ends = case.track(row.name).ends
    for look in reversed(case.committed_over_time.get(row.name, ())):
        at = look.at
        if at is None:
            continue
        near = [end for end in ends if end.at is not None and 0 <= end.at - at < ONE_SURVEY_MS]
        if not near or near[0].latest >= look.offset:
            break
        times.append(at)
    return times[-1] if len(times) > 1 else None
