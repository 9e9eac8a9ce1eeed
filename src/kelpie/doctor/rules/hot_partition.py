"""KLP319 hot-partition

What it sees: most of a topic's records go to one partition, and the group is behind there,
while it has read all of the others.

Why it matters: more members do not help, since one member reads a partition. The records
of that partition are late, however fast the rest is.

How it decides: over at least 10 min, one partition of a topic with three or more got half
of the records or more, and at least three times as many as each other one; the group is
more than a minute of records behind there, and in no other partition of the topic do
records wait for more than a minute.
It is a warning if the lag there grows from look to look (KLP318, which this rule
explains), else a notice.

What it needs: two surveys at least 10 min apart; or one, with the history of commits and
where logs ended some time ago. Without them it is undetermined.

What to do: look at the keys of the records in that partition: one key that is far more
frequent than others, or records without a key from a producer that always chooses the same
partition. Give such records a finer key, or process them by several threads.

When it is wrong: a producer that fills one partition after the other.

Reproduce: kelpie lab run hot-partition
"""

from collections import defaultdict

from kelpie.cluster import commands
from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.lag_trend import LagTrend, lag_trend, per_second
from kelpie.doctor.membership import describing
from kelpie.doctor.positions import SURE_MS, Track, keeps_up
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import POSITION_OPEN

_LEAST_PARTITIONS = 3
_HALF = 0.5
_TIMES = 3
_LEAST_RECORDS = 100
_FAR_MS = 60_000


def judge(case: Case) -> Judgement:
    if case.members is not None and not case.members and not case.commits_without_joining:
        return ABSENT  # It does not read. KLP310 tells it.
    tracks = case.tracks
    if not tracks:
        return undetermined("its committed offsets")
    if all(track.is_behind is False for track in tracks):
        return ABSENT
    by_topic: defaultdict[str, list[Track]] = defaultdict(list)
    for track in tracks:
        by_topic[track.name.topic].append(track)
    unknown = False
    for own in by_topic.values():
        behind = [track for track in own if not _keeps_up(case, track)]
        if len(own) < _LEAST_PARTITIONS or len(behind) != 1:
            unknown = unknown or any(track.is_behind is None for track in own)
            continue
        trends = [lag_trend(track) for track in own]
        known = [trend for trend in trends if trend is not None]
        if len(known) < len(own):
            unknown = True
            continue
        hot = next(trend for trend in known if trend.track is behind[0])
        if _is_hot(hot, [trend for trend in known if trend is not hot]):
            return _found(case, hot, known)
    if unknown:
        return undetermined(words.SECOND_LOOK, *([words.HISTORY] if case.history_from is None else []))
    return ABSENT


def _keeps_up(case: Case, track: Track) -> bool:
    """What came in since the last commit does not count: between two commits, every partition has some."""
    return keeps_up(track, max(SURE_MS, case.patience_ms(track.name)))


def _is_hot(hot: LagTrend, others: list[LagTrend]) -> bool:
    most = max(trend.writes for trend in others)
    total = hot.writes + sum(trend.writes for trend in others)
    return (
        hot.writes * hot.lasted_ms >= _LEAST_RECORDS
        and hot.writes >= _HALF * total
        and hot.writes >= _TIMES * most
        and hot.behind_ms >= _FAR_MS
    )


def _found(case: Case, hot: LagTrend, all_of_topic: list[LagTrend]) -> Finding:
    name = hot.track.name
    total = sum(trend.writes for trend in all_of_topic)
    most = max(trend.writes for trend in all_of_topic if trend is not hot)
    ends = [end for end in hot.track.ends if (end.at or 0) >= hot.since]
    return RULE.finding(
        Severity.WARNING if hot.grows else Severity.NOTICE,
        case.group,
        f"Group {case.group} is behind in {name} alone: {hot.writes / total:.0%} of the records of "
        f"{name.topic} go there ({per_second([hot.writes])}; no other of its {len(all_of_topic)} partitions "
        f"gets more than {per_second([most])}); {words.records(hot.lags[-1])} wait.",
        why="One member reads a partition: more members would not help.",
        evidence=words.evidence_of(*hot.track.points[-1:], ends[0], ends[-1], name=name),
        remedies=[
            Remedy(
                "See which keys the records have that wait there; one key may be far more frequent than "
                "others.",
                commands.peek(case.cluster, name, hot.track.offset),
            ),
            Remedy("Give such records a finer key, or let the member process them by several threads."),
        ],
        partitions=[name],
        since=hot.since,
        check=describing(case, "--offsets"),
    )


RULE = Rule.of(
    __name__, judge, Presentation("has a hot partition", "have a hot partition"), asked_for=POSITION_OPEN
)
