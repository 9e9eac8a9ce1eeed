"""KLP313 retention-margin

What it sees: the group falls behind, and the retention of the topic will reach
it: records will be deleted before it has read them.

Why it matters: data is lost then, without an error until the group is refused
(KLP303). Until then it can be helped.

How it decides, for each partition, over all surveys:
- The next record to read is so old, the topic keeps records for so long
  (retention.ms), and the group reads slower than producers write: from the rates
  follows when it is reached, at the earliest. Brokers delete whole segments, so
  it may come later.
- The beginning of the log moves (retention.bytes, DeleteRecords) faster than the
  group does. Kafka Streams deletes what it has committed in its own repartition
  topics; these are left out.
It is a warning once half of the way is used up, critical at nine tenths. A group
that reads steadily, but slower than producers write, is a notice before that: a
single dip of the lag does not change it. Rates count over a tenth of the time that
the topic keeps, or an hour if that is less. A forecast beyond the retention itself
is not told: rates change sooner than that. A group that was as far behind in an earlier survey
and caught up reads in bursts: it is one step less. A group without members is a
notice at most: it is abandoned, or KLP310 tells that it has stopped.

What it needs: two surveys, or one with the history of commits and where logs ended
some time ago (the right Describe on the topics); DescribeConfigs on the topics for
retention.ms, without which only a beginning of the log that moves is seen. Without
a second look it is undetermined.

What to do: more members or a faster consumer, up to one member a partition; keep
records for longer until it has caught up.

When it is wrong: a peak in traffic that ends soon. Producers that set the
timestamps of records to something else than the time.

Reproduce: kelpie lab run retention-margin
"""

from typing import NamedTuple

from kelpie.cluster import commands
from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.lag_trend import grows_steadily
from kelpie.doctor.membership import describing
from kelpie.doctor.positions import Track, lag_ms, rate
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import POSITION_OPEN
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations.positions import NO_OFFSET

_HALF, _NEARLY_ALL = 0.5, 0.9
_LONG_WINDOW_MS = 3_600_000
_LONGEST_FORECAST_MS = 30 * 24 * _LONG_WINDOW_MS
_AS_FAR, _CAUGHT_UP = 0.8, 0.2
"""Of the lag now: an earlier lag that counts as large, and of that one: a lag that counts as read."""


class Forecast(NamedTuple):
    """When a group loses records in a partition, and how much of the way there is used up (0 to 1)."""

    track: Track
    used: float
    left_ms: float
    reads: float
    """Offsets a millisecond, of the group."""
    text: str
    is_steady: bool
    recovers: bool
    """It was as far behind before, and caught up."""
    longest_ms: int
    """A forecast beyond that says nothing."""

    @property
    def when(self) -> str:
        if self.left_ms > self.longest_ms:
            return f"if that goes on, but not within {duration(self.longest_ms)}"
        return f"in {duration(self.left_ms)} at the earliest" if self.left_ms > 0 else "at any moment"

    @property
    def severity(self) -> Severity | None:
        if self.used >= _NEARLY_ALL:
            return Severity.WARNING if self.recovers else Severity.CRITICAL
        if self.used >= _HALF:
            return Severity.NOTICE if self.recovers else Severity.WARNING
        return Severity.NOTICE if self.is_steady and self.reads > 0 and not self.recovers else None


def judge(case: Case) -> Judgement:
    tracks = case.tracks
    if not tracks:
        return undetermined("its committed offsets")
    patience = case.commit_rhythm.patience_ms
    forecasts: list[Forecast | None] = []
    unknown = False
    for track in tracks:
        if track.is_behind is None:
            unknown = True
        elif track.is_behind and not _keeps_for_ever(case, track):
            window = _window(track)
            if window is None or track.now - window < max(patience, _least_window(case, track)):
                unknown = True
            else:
                forecasts += [_by_age(case, track, window, patience), _by_start(case, track, window)]
    serious = [(row.severity, row) for row in forecasts if row is not None and row.severity is not None]
    if serious:
        return _found(case, serious)
    if unknown:
        return undetermined(words.SECOND_LOOK, *([words.HISTORY] if case.history_from is None else []))
    return ABSENT


def _keeps_for_ever(case: Case, track: Track) -> bool:
    topic = track.name.topic
    policy = words.topic_setting(case.cluster, topic, "cleanup.policy")
    if policy is not None and "delete" not in policy:
        return True
    starts = [end.earliest for end in track.ends if end.earliest != NO_OFFSET]
    moves = bool(starts) and starts[-1] > starts[0]
    limits = {words.topic_setting(case.cluster, topic, name) for name in ("retention.ms", "retention.bytes")}
    # Kafka Streams deletes what it has read and committed in its repartition topics, and no more.
    is_own = topic.startswith(f"{case.group}-") and topic.endswith("-repartition")
    return limits == {"-1"} and (is_own or not moves)


def _retention(case: Case, track: Track) -> int | None:
    """How long the topic keeps records, in milliseconds. None: unknown, or for ever."""
    value = words.topic_setting(case.cluster, track.name.topic, "retention.ms") or ""
    return whole_number(value) or None


def _least_window(case: Case, track: Track) -> int:
    """Rates over less than that are those of a burst or of a pause."""
    kept = _retention(case, track)
    return _LONG_WINDOW_MS // 60 if kept is None else min(kept // 10, _LONG_WINDOW_MS)


def _window(track: Track) -> Instant | None:
    """Since when both the group's position and the end of the log are known."""
    ends = [end.at for end in track.ends if end.at is not None]
    if not ends or not track.points:
        return None
    begin = max(ends[0], track.points[0].at)
    return next((at for at in ends if at >= begin), None)


def _reads(track: Track, window: Instant) -> float:
    begin = track.offset_at(window)
    assert begin is not None
    return max(0.0, rate([(window, begin), (track.now, track.offset)]) or 0.0)


def _by_age(case: Case, track: Track, window: Instant, patience: int) -> Forecast | None:
    kept = _retention(case, track)
    lag = lag_ms(track)
    if kept is None or lag is None:
        return None
    age, may_be_older = lag
    reads = _reads(track, window)
    ends = [(end.at, end.latest) for end in track.ends if end.at is not None and end.at >= window]
    writes = max(0.0, rate(ends) or 0.0)
    if reads > 0 and reads >= writes:
        return None  # It catches up.
    grows = 1.0 if writes == 0 else 1 - reads / writes
    left = max(0.0, (kept - age) / grows)
    least = "at least " if may_be_older else ""
    text = f"the next record to read is {least}{duration(age)} old, and the topic keeps {duration(kept)}"
    moves = track.read_at is not None and track.now - track.read_at < patience
    steady = moves and age > patience and grows_steadily(_lags(track, ends))
    return Forecast(track, min(1.0, age / kept), left, reads, text, steady, _recovers(track, ends), kept)


def _lags(track: Track, ends: list[tuple[Instant, int]]) -> list[int]:
    """From survey to survey."""
    stood = [(latest, track.offset_at(at)) for at, latest in ends]
    return [latest - offset for latest, offset in stood if offset is not None]


def _recovers(track: Track, ends: list[tuple[Instant, int]]) -> bool:
    """Whether an earlier survey saw it as far behind as now, and a later one saw that it had caught up."""
    lags = _lags(track, ends)
    large = next((lag for lag in lags if lag > 0 and lag >= _AS_FAR * lags[-1]), None)
    if large is None:
        return False
    return any(lag <= _CAUGHT_UP * large for lag in lags[lags.index(large) + 1 :])


def _by_start(case: Case, track: Track, window: Instant) -> Forecast | None:
    starts = [
        (end.at, end.earliest)
        for end in track.ends
        if end.at is not None and end.at >= window and end.earliest != NO_OFFSET
    ]
    end = track.end
    comes = rate(starts)
    if end is None or comes is None or comes <= 0 or end.earliest > track.offset:
        return None
    _, begin = starts[-1]
    reads = _reads(track, window)
    if reads >= comes or end.latest <= begin:
        return None
    margin = track.offset - begin
    before = f"the log begins {words.records(margin)} before its offset"
    text = f"{before}, and its beginning moves {_per_second(comes)}"
    used = 1 - margin / (end.latest - begin)
    left = margin / (comes - reads)
    longest = _retention(case, track) or _LONGEST_FORECAST_MS
    ends = [(end.at, end.latest) for end in track.ends if end.at is not None and end.at >= window]
    return Forecast(track, used, left, reads, text, False, _recovers(track, ends), longest)


def _per_second(per_ms: float) -> str:
    return f"{per_ms * 1000:,.3g} records a second"


def _found(case: Case, forecasts: list[tuple[Severity, Forecast]]) -> Finding:
    forecasts.sort(key=lambda row: (-row[0], row[1].left_ms))
    severity, worst = forecasts[0]
    tracks = [forecast.track for _, forecast in forecasts]
    names = list(dict.fromkeys(track.name for track in tracks))
    abandoned = case.members is not None and not case.members
    empty = " Nobody is in the group: it is abandoned, or has stopped." if abandoned else ""
    delete = Remedy(
        "If nobody needs the group any more, delete it; until then each look reports its lag. This "
        "cannot be undone.",
        commands.kafka("kafka-consumer-groups", case.cluster, "--group", case.group, "--delete"),
    )
    faster = Remedy("Make it read faster: more members, up to one for each partition, or larger batches.")
    return RULE.finding(
        Severity.NOTICE if abandoned else severity,
        case.group,
        f"Group {case.group} will lose records of {words.some(names)} {worst.when}: "
        f"{worst.text}; it reads {_per_second(worst.reads)}, and "
        f"{words.records(worst.track.lag or 0)} wait.{empty}",
        why="Records that are deleted before the group has read them are lost to it.",
        evidence=_evidence(tracks),
        remedies=[
            words.keep_longer(case.cluster, worst.track.name.topic),
            delete if abandoned else faster,
        ],
        partitions=names,
        check=describing(case, "--offsets"),
    )


def _evidence(tracks: list[Track]) -> list[Evidence]:
    evidence = []
    for track in tracks[: words.MOST_EVIDENCE // 4]:
        points = track.points
        ends = [end for end in track.ends if (end.at or 0) >= points[0].at]
        evidence += words.evidence_of(*points[:1], *points[-1:], *ends[:1], *ends[-1:], name=track.name)
    return evidence


RULE = Rule.of(
    __name__,
    judge,
    Presentation("will lose records to retention", "will lose records to retention"),
    asked_for=POSITION_OPEN,
)
