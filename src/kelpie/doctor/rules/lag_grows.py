"""KLP318 lag-grows

What it sees: the group reads, but more slowly than producers write, for a long time. Or
it works off a large backlog: then it tells when the group will have caught up.

Why it matters: what the group shows or does is older and older, and in the end retention
deletes records that it has not read (KLP303).

How it decides: from the ends of logs and the group's offsets over the last hours (10 min
at least) follow the rates in and out, partition by partition. The lag grows if the group
moves, producers write at least 5 % faster, two thirds of the steps from look to look show
no smaller lag, and what waits is more than producers write in 5 min. If the lag fell by a
third or more in between, it counts from then on. It is a notice, and a warning once it has
lasted for an hour: a burst or the peak of a day is usually over by then. A backlog that
shrinks from look to look is a notice if it takes 10 min or longer to work it off. A group
that does not move at all is KLP309 or KLP310; KLP313 tells how near retention is, and this
rule explains it.

What it needs: two surveys at least 10 min apart, and a third one to see that it is steady;
or one, with the history of commits and where logs ended some time ago (Describe on the
topics, read access to __consumer_offsets). Without them it is undetermined.

What to do: more members, up to one for each partition; a faster consumer; or larger
batches. If one partition alone grows, see KLP319.

When it is wrong: a peak that lasts for hours and ends. Compacted topics and transactions
have offsets without records, so numbers of records are upper bounds.

Reproduce: kelpie lab run lag-grows
"""

from collections.abc import Sequence

from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.lag_trend import LagTrend, lag_trend, per_second
from kelpie.doctor.membership import describing
from kelpie.doctor.positions import lag_ms
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import POSITION_OPEN
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant
from kelpie.model.words import duration

_FAR_MS = 5 * 60_000
_LONG_MS = 10 * 60_000
_SURE_MS = 3_600_000


def judge(case: Case) -> Judgement:
    if case.members is not None and not case.members and not case.commits_without_joining:
        return ABSENT  # It does not read. KLP310 tells it.
    tracks = case.tracks
    if not tracks:
        return undetermined("its committed offsets")
    behind = [track for track in tracks if track.is_behind is not False]
    if not behind:
        return ABSENT
    trends = [lag_trend(track) for track in behind]
    known = [trend for trend in trends if trend is not None]
    growing = [trend for trend in known if _falls_behind(case, trend)]
    if growing:
        return _growing(case, growing, min(trend.grows_since for trend in known if trend.grows))
    shrinking = [trend for trend in known if trend.shrinks and trend.caught_up_in_ms >= _LONG_MS]
    if shrinking:
        return _shrinking(case, shrinking)
    if len(known) < len(trends):
        return undetermined(words.SECOND_LOOK, *([words.HISTORY] if case.history_from is None else []))
    return ABSENT


def _falls_behind(case: Case, trend: LagTrend) -> bool:
    """Not if it commits rarely: between two commits the lag of any group grows."""
    track = trend.track
    if not trend.grows or track.read_at is None:
        return False
    patience = case.patience_ms(track.name)
    return track.now - track.read_at < patience and trend.behind_ms >= max(_FAR_MS, 2 * patience)


def _growing(case: Case, trends: list[LagTrend], since: Instant) -> Finding:
    """Since when: also by partitions that it comes to only now and then, and which are no part of it."""
    trends.sort(key=lambda trend: -trend.behind_ms)
    worst = trends[0]
    names = [trend.track.name for trend in trends]
    lag = words.records(sum(trend.lags[-1] for trend in trends))
    lasted_ms = case.cluster.now - since
    faster = Remedy("Make it read faster: more members, up to one for each partition, or larger batches.")
    return RULE.finding(
        Severity.WARNING if lasted_ms >= _SURE_MS else Severity.NOTICE,
        case.group,
        f"Group {case.group} falls behind in {words.some(names)}: producers write "
        f"{per_second(trend.writes for trend in trends)}, and it reads "
        f"{per_second(trend.reads for trend in trends)}, for {duration(lasted_ms)} at least; "
        f"{lag} wait.{_time_left(case, worst)}",
        why="The lag grows from look to look: it will not catch up while producers write like this.",
        evidence=_evidence(trends),
        remedies=[faster],
        partitions=names,
        since=since,
        check=describing(case, "--offsets"),
    )


def _time_left(case: Case, worst: LagTrend) -> str:
    """When retention reaches it, if that is known and within the time that the topic keeps."""
    kept = whole_number(words.topic_setting(case.cluster, worst.track.name.topic, "retention.ms") or "")
    policy = words.topic_setting(case.cluster, worst.track.name.topic, "cleanup.policy") or "delete"
    age = lag_ms(worst.track)
    if not kept or "delete" not in policy or age is None:
        return ""
    left = (kept - age[0]) / (1 - worst.reads / worst.writes)
    if left <= 0 or left > kept:
        return f" The topic keeps records for {duration(kept)}."
    return f" Retention ({duration(kept)}) reaches it in {duration(left)}, if that goes on."


def _shrinking(case: Case, trends: list[LagTrend]) -> Finding:
    trends.sort(key=lambda trend: -trend.caught_up_in_ms)
    worst = trends[0]
    names = [trend.track.name for trend in trends]
    lag = words.records(sum(trend.lags[-1] for trend in trends))
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} works off a backlog in {words.some(names)}: {lag} wait, and it reads "
        f"{per_second(trend.reads for trend in trends)} while producers write "
        f"{per_second(trend.writes for trend in trends)}. It will have caught up in about "
        f"{duration(worst.caught_up_in_ms)}.",
        why="It was away or too slow for some time, and is faster than producers now.",
        evidence=_evidence(trends),
        partitions=names,
        check=describing(case, "--offsets"),
    )


def _evidence(trends: Sequence[LagTrend]) -> list[Evidence]:
    evidence: list[Evidence] = []
    for trend in trends[: words.MOST_EVIDENCE // 4]:
        track = trend.track
        points = [point for point in track.points if point.at >= trend.since] or list(track.points[-1:])
        ends = [end for end in track.ends if (end.at or 0) >= trend.since]
        evidence += words.evidence_of(points[0], points[-1], ends[0], ends[-1], name=track.name)
    return evidence


RULE = Rule.of(__name__, judge, Presentation("falls behind", "fall behind"), asked_for=POSITION_OPEN)
