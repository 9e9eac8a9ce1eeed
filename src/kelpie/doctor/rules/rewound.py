"""KLP308 rewound

What it sees: the group's committed offset went back, and has not come to where
it was since.

Why it matters: everything in between is read and processed once more. If it was not
meant, look for duplicates downstream.

How it decides: in the history of commits (or between two surveys) an offset is
followed by a smaller one, and the highest one has not been reached again. A
commit without a leader epoch after commits that had one was made by a tool
(kafka-consumer-groups --reset-offsets, kelpie reset), otherwise by a consumer
that called seek, or by one that did not know that it had lost the
partition. Offsets that were removed in between (KLP302, or deleted by hand)
begin anew. A commit by a consumer that is younger than 5 s is undetermined: when the
coordinator moves, older commits may arrive last. A log that ends before the highest
offset, or did so after that was committed, or whose leader epoch went back, is another
log (KLP304, KLP314), and nothing is read again. So is a topic that an earlier look
saw with another id, if the highest offset was committed before.

What it needs: the right to read __consumer_offsets, or two surveys between which the
offset went back. Without both it is undetermined. Share groups have no committed
offsets, and are not judged.

What to do: nothing, if it was meant. If not, and no member has started consuming
yet, set the offset back to where it was.

When it is wrong: a topic that was created anew and has grown past the old
offset, if the commits carry no leader epochs.

Reproduce: kelpie lab run rewound
"""

from itertools import pairwise
from typing import NamedTuple

from kelpie.cluster.topics import is_of_old_topic
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Severity, undetermined
from kelpie.doctor.membership import describing
from kelpie.doctor.position_words import (
    HISTORY,
    MOST_EVIDENCE,
    SECOND_LOOK,
    evidence_of,
    records,
    reset,
    some,
)
from kelpie.doctor.positions import Point, Track
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.model.words import moment
from kelpie.observations import LogEnds

_LATE_MS = 5_000
"""When a coordinator moves, consumers send the commits that were under way again, in any order (seen with
librdkafka: 49, then 47 and 46 within 400 ms, and 56 a second later).
"""


class Rewind(NamedTuple):
    name: TopicPartition
    peak: Point
    """The last time that it stood highest."""
    back: Point
    """The next time that it was seen."""
    now: int

    @property
    def number(self) -> int:
        """Records that will have been read twice."""
        return self.peak.offset - self.back.offset

    @property
    def left(self) -> int:
        return self.peak.offset - self.now

    @property
    def by_tool(self) -> bool:
        return self.back.is_commit and self.back.leader_epoch < 0 <= self.peak.leader_epoch


def judge(case: Case) -> Judgement:
    abandoned = case.reads.abandoned
    tracks = [
        case.track(name)
        for name in sorted({*case.commits, *case.committed})
        if name not in abandoned and not case.is_gone(name)
    ]
    rewinds = [
        rewind
        for track in tracks
        if (rewind := rewound(track)) is not None and not _is_in_new_topic(case, rewind)
    ]
    lasting = [rewind for rewind in rewinds if not _may_be_late(case, rewind)]
    if lasting:
        return _found(case, lasting)
    if rewinds:
        return undetermined(SECOND_LOOK)
    if case.history_from is None and not any(len(track.points) > 1 for track in tracks):
        return undetermined(HISTORY, SECOND_LOOK)
    return ABSENT


def _is_in_new_topic(case: Case, rewind: Rewind) -> bool:
    """Whether the highest offset was committed in an earlier topic of the same name."""
    return is_of_old_topic(rewind.name.topic, rewind.peak.at, case.cluster.known_topics)


def _may_be_late(case: Case, rewind: Rewind) -> bool:
    """Whether older commits of its consumers may have arrived last; then the next commit makes it good."""
    is_at_work = bool(case.members) or case.commits_without_joining
    by_consumer = rewind.back.is_commit and rewind.back.leader_epoch >= 0 and is_at_work
    return by_consumer and case.cluster.now - rewind.back.at < _LATE_MS


def _is_seen_after(end: LogEnds, peak: Point) -> bool:
    """Ends that were asked for by a time in the past do not count: producers choose those times."""
    return end.earliest >= 0 and end.at is not None and end.at >= peak.at


def rewound(track: Track) -> Rewind | None:
    """The rewind that has not been made good yet, if there is one."""
    if not track.points or track.offset < 0:
        return None
    highest = max(point.offset for point in track.points)
    if track.offset >= highest:
        return None
    pairs = [(peak, back) for peak, back in pairwise(track.points) if peak.offset == highest]
    if not pairs:
        return None
    peak, back = pairs[-1]
    if 0 <= back.leader_epoch < peak.leader_epoch:
        return None  # Leader epochs only grow: this is another log.
    if any(end.latest < highest for end in track.ends if end is track.end or _is_seen_after(end, peak)):
        return None  # The log did not hold what the group is said to have read: nothing is read again.
    return Rewind(track.name, peak, back, track.offset)


def _found(case: Case, rewinds: list[Rewind]) -> Finding:
    rewinds.sort(key=lambda rewind: -rewind.number)
    names = [rewind.name for rewind in rewinds]
    total = sum(rewind.number for rewind in rewinds)
    left = sum(rewind.left for rewind in rewinds)
    first = rewinds[0]
    since = min(rewind.back.at for rewind in rewinds)
    by = "by a tool" if all(rewind.by_tool for rewind in rewinds) else "by a consumer or a tool"
    at_first = f", in {first.name}" if len(rewinds) > 1 else ""
    done = f"; {records(left)} of them are still ahead" if left != total else ""
    step = "If it was not meant: stop the consumers and set {} to where it was."
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group} was set back in {some(names)}{at_first} from {first.peak.offset} to "
        f"{first.back.offset}, at {moment(since)} {by}: {records(total)} to be read again{done}.",
        why="What lies between was processed before. If nobody meant this, look for duplicates downstream.",
        evidence=[
            each
            for name, peak, back, _ in rewinds[: MOST_EVIDENCE // 2]
            for each in evidence_of(peak, back, name=name)
        ],
        remedies=[
            reset(case, step.format(name), [name], "--to-offset", peak.offset)
            for name, peak, _, _ in rewinds[:MOST_EVIDENCE]
        ],
        partitions=names,
        since=since,
        check=describing(case, "--offsets"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("was rewound", "were rewound"),
    asked_for=Sign.MOVED_BACK
    | Sign.UNTOLD_OFFSET
    | Sign.ANOTHER_TOPIC
    | Sign.OFFSET_REFUSED
    | Sign.SEEN_ONCE,
)
