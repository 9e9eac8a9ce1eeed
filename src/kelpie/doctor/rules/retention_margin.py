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
  group does.
It is a warning once half of the way is used up, critical at nine tenths. A group
that reads steadily, but slower than producers write, is a notice before that: a
single dip of the lag does not change it.

What to do: more members or a faster consumer, up to one member a partition; keep
records for longer until it has caught up.

When it is wrong: a peak in traffic that ends soon. Producers that set the
timestamps of records to something else than the time.

Reproduce: kelpie lab run retention-margin
"""

from itertools import pairwise
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_progress import tracks_of
from kelpie.doctor.position_words import (
    HISTORY,
    MOST_EVIDENCE,
    SECOND_LOOK,
    evidence_of,
    keep_longer,
    records,
    some,
    topic_setting,
)
from kelpie.doctor.positions import Track, lag_ms, rate
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations.positions import NO_OFFSET

_HALF, _NEARLY_ALL = 0.5, 0.9
_STEADY = 2 / 3
"""Of the steps from look to look, so many show no falling lag."""
_LEAST_LOOKS = 3


class Forecast(NamedTuple):
    """When a group loses records in a partition, and how much of the way there is used up (0 to 1)."""

    way: Track
    used: float
    left_ms: float
    reads: float
    """Offsets a millisecond, of the group."""
    by: float
    """And of what it runs away from: producers, or the beginning of the log."""
    text: str
    is_steady: bool

    @property
    def severity(self) -> Severity | None:
        if self.used >= _NEARLY_ALL:
            return Severity.CRITICAL
        if self.used >= _HALF:
            return Severity.WARNING
        return Severity.NOTICE if self.is_steady and self.reads > 0 else None


def judge(case: Case) -> Judgement:
    tracks = tracks_of(case)
    if not tracks:
        return undetermined("its committed offsets")
    patience = case.commit_rhythm.patience_ms
    forecasts: list[Forecast] = []
    unknown = False
    for way in tracks:
        if way.is_behind is None:
            unknown = True
        elif way.is_behind and not _keeps_for_ever(case, way):
            window = _window(way)
            if window is None or way.now - window < patience:
                unknown = True
            else:
                both = (_by_age(case, way, window, patience), _by_start(way, window))
                forecasts += [forecast for forecast in both if forecast is not None]
    serious = [forecast for forecast in forecasts if forecast.severity is not None]
    if serious:
        return _found(case, serious)
    if unknown:
        return undetermined(SECOND_LOOK, *([HISTORY] if case.history_from is None else []))
    return ABSENT


def _keeps_for_ever(case: Case, way: Track) -> bool:
    topic = way.name.topic
    policy = topic_setting(case.cluster, topic, "cleanup.policy")
    if policy is not None and "delete" not in policy:
        return True
    starts = [end.earliest for end in way.ends if end.earliest != NO_OFFSET]
    moves = bool(starts) and starts[-1] > starts[0]
    limits = {topic_setting(case.cluster, topic, name) for name in ("retention.ms", "retention.bytes")}
    return limits == {"-1"} and not moves


def _window(way: Track) -> Instant | None:
    """Since when both the group's position and the end of the log are known."""
    ends = [end.at for end in way.ends if end.at is not None]
    if not ends or not way.points:
        return None
    begin = max(ends[0], way.points[0].at)
    return next((at for at in ends if at >= begin), None)


def _reads(way: Track, window: Instant) -> float:
    begin = way.offset_at(window)
    assert begin is not None
    return max(0.0, rate([(window, begin), (way.now, way.offset)]) or 0.0)


def _by_age(case: Case, way: Track, window: Instant, patience: int) -> Forecast | None:
    retention = topic_setting(case.cluster, way.name.topic, "retention.ms") or ""
    age = lag_ms(way)
    if not retention.isdigit() or int(retention) <= 0 or age is None:
        return None
    kept = int(retention)
    reads = _reads(way, window)
    ends = [(end.at, end.latest) for end in way.ends if end.at is not None and end.at >= window]
    writes = max(0.0, rate(ends) or 0.0)
    if reads > 0 and reads >= writes:
        return None  # It catches up.
    grows = 1.0 if writes == 0 else 1 - reads / writes
    left = max(0.0, (kept - age[0]) / grows)
    least = "at least " if age[1] else ""
    text = f"the next record to read is {least}{duration(age[0])} old, and the topic keeps {duration(kept)}"
    moves = way.read_at is not None and way.now - way.read_at < patience
    steady = moves and age[0] > patience and _grows_steadily(way, window)
    return Forecast(way, min(1.0, age[0] / kept), left, reads, writes, text, steady)


def _grows_steadily(way: Track, window: Instant) -> bool:
    """Whether the lag grows from look to look; one dip among them does not count."""
    lags = []
    for end in way.ends:
        if end.at is not None and end.at >= window:
            stood = way.offset_at(end.at)
            if stood is not None:
                lags.append(end.latest - stood)
    if len(lags) < _LEAST_LOOKS or lags[-1] <= lags[0]:
        return False
    steps = [later >= earlier for earlier, later in pairwise(lags)]
    return sum(steps) >= _STEADY * len(steps)


def _by_start(way: Track, window: Instant) -> Forecast | None:
    starts = [
        (end.at, end.earliest)
        for end in way.ends
        if end.at is not None and end.at >= window and end.earliest != NO_OFFSET
    ]
    end = way.end
    comes = rate(starts)
    if end is None or comes is None or comes <= 0 or end.earliest > way.offset:
        return None
    begin = starts[-1][1]
    reads = _reads(way, window)
    if reads >= comes or end.latest <= begin:
        return None
    margin = way.offset - begin
    text = f"the log begins {records(margin)} before its offset, and its beginning moves {_per_second(comes)}"
    used = 1 - margin / (end.latest - begin)
    return Forecast(way, used, margin / (comes - reads), reads, comes, text, False)


def _per_second(per_ms: float) -> str:
    return f"{per_ms * 1000:,.3g} records a second"


def _found(case: Case, found: list[Forecast]) -> Finding:
    found.sort(key=lambda row: (-(row.severity or 0), row.left_ms))
    worst = found[0]
    names = list(dict.fromkeys(row.way.name for row in found))
    assert worst.severity is not None
    return RULE.finding(
        worst.severity,
        case.group,
        f"Group {case.group} will lose records of {some(names)} {_soon(worst.left_ms)}: "
        f"{worst.text}; it reads {_per_second(worst.reads)}, and "
        f"{records(worst.way.lag or 0)} wait.",
        why="Records that are deleted before the group has read them are lost to it.",
        evidence=_evidence(found),
        remedies=[
            keep_longer(case.cluster, worst.way.name.topic),
            Remedy("Make it read faster: more members, up to one for each partition, or larger batches."),
        ],
        partitions=names,
    )


def _soon(left_ms: float) -> str:
    return f"in {duration(left_ms)} at the earliest" if left_ms > 0 else "at any moment"


def _evidence(found: list[Forecast]) -> list[Evidence]:
    rows = []
    for row in found[: MOST_EVIDENCE // 4]:
        way = row.way
        ends = [end for end in way.ends if (end.at or 0) >= way.points[0].at]
        rows += evidence_of(*way.points[:1], *way.points[-1:], *ends[:1], *ends[-1:], name=way.name)
    return rows


RULE = Rule.of(
    __name__,
    judge,
    presentation=Presentation(
        of_one="will lose records to retention", of_many="will lose records to retention"
    ),
)
