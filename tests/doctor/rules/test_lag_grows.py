"""KLP318: rate in against rate out."""

from collections.abc import Callable
from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.causes import linked
from kelpie.doctor.finding import ABSENT, Finding, Severity
from kelpie.doctor.rules import rules
from kelpie.doctor.rules.lag_grows import judge
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    an_end,
    commits,
    found,
    looks,
    missing,
)

Offsets = Callable[[int], int]
WEEK = {("topic orders", "retention.ms"): str(7 * 24 * HOUR)}


def _case(
    written: Offsets, read: Offsets, *, minutes: int = 30, every: int = 5 * SECOND, **fields: Any
) -> Case:
    """Offsets by the second since the first look; a look every 5 min, a commit every 5 s."""
    first = NOW - minutes * MINUTE
    times = range(first, NOW + 1, every)
    history = commits(*((at, read((at - first) // SECOND)) for at in times))
    ends = [an_end(written((at - first) // SECOND), at=at) for at in range(first, NOW + 1, 5 * MINUTE)]
    own = {
        "states": [a_state("Stable", a_member("app-1", 0))],
        "history_from": first,
        **looks(a_committed(history[-1].offset)),
        **fields,
    }
    return a_case(cluster=a_cluster(ends=ends, settings=WEEK), commits=history, **own)


def test_a_group_that_reads_more_slowly_than_producers_write_falls_behind() -> None:
    """Both rates are told, and when retention reaches it."""
    finding = found(judge(_case(lambda s: 100 * s, lambda s: 40 * s)))
    assert finding.severity is Severity.NOTICE
    assert finding.summary.startswith(
        "Group billing falls behind in orders-0: producers write 100 records a second, and it reads 40 "
        "records a second, for 30 min at least; 108,000 records wait."
    )


def test_a_group_that_reads_in_bursts_does_not_fall_behind() -> None:
    """Such a lag it has worked off before."""

    def read(second: int) -> int:
        """Slowly for 13 minutes of each 20, and then all that waits."""
        begun = second - second % (20 * 60)
        is_slow = second - begun < 13 * 60
        return 100 * begun + 5 * (second - begun) if is_slow else 100 * second

    for minutes in (72, 92, 112):
        assert judge(_case(lambda s: 100 * s, read, minutes=minutes)) is ABSENT, minutes


def test_what_grew_before_the_lag_fell_does_not_count() -> None:
    """Seen on real Kafka: a peak of 40 min is worked off, and 50 min of a larger one follow: no warning."""

    def read(second: int) -> int:
        return 40 * second if second < 2400 else 100 * 2400 + 40 * (second - 2400)

    finding = found(judge(_case(lambda s: 100 * s, read, minutes=90)))
    assert finding.severity is Severity.NOTICE
    assert ", for 50 min at least" in finding.summary


def test_a_backlog_that_comes_and_goes_is_not_being_worked_off() -> None:
    """A group that commits every 20 min, and whose last commit was nearer than that of the first look."""

    def read(second: int) -> int:
        return 0 if second < 60 else 100 * (second - second % 1200)

    assert judge(_case(lambda s: 100 * s + 90_000, read, minutes=65)) is ABSENT


def test_after_an_hour_it_is_a_warning() -> None:
    finding = found(judge(_case(lambda s: 100 * s, lambda s: 40 * s, minutes=90)))
    assert finding.severity is Severity.WARNING


def test_it_explains_that_retention_comes_nearer() -> None:
    case = _case(lambda s: 100 * s, lambda s: 10 * s, minutes=90)
    retention = {("topic orders", "retention.ms"): str(2 * HOUR)}
    ends = [row for rows in case.cluster.ends.values() for row in rows]
    close = a_case(
        cluster=a_cluster(ends=ends, settings=retention),
        commits=case.commits,
        committed=case.committed,
        committed_over_time=case.committed_over_time,
        states=case.states,
        history_from=case.history_from,
    )
    margin = rules()["KLP313"].judge
    assert margin is not None
    effect, cause = linked([found(margin(close)), found(judge(close))])
    assert effect.caused_by == (cause.id,)


def test_a_large_backlog_that_shrinks_is_told_with_the_time_to_catch_up() -> None:
    finding = found(judge(_case(lambda s: 1_000_000 + 10 * s, lambda s: 110 * s)))
    assert finding.severity is Severity.NOTICE
    assert "It will have caught up in about 2 h 16 min." in finding.summary


def test_a_small_backlog_that_shrinks_is_no_finding() -> None:
    """Near miss: it is over in a minute."""
    assert judge(_case(lambda s: 186_000 + 10 * s, lambda s: 110 * s)) is ABSENT


def test_a_burst_is_no_finding() -> None:
    """Near miss: it caught up in between, or producers have just begun."""
    bursts = _case(lambda s: 100 * s, lambda s: 100 * (s - s % 1200))
    assert not isinstance(judge(bursts), Finding)
    late = _case(lambda s: 100 * s + (20_000 if s > 1500 else 0), lambda s: 100 * s)
    assert judge(late) is ABSENT


def test_a_group_that_commits_once_in_a_while_is_no_finding() -> None:
    """Near miss: between two commits the lag of any group grows."""
    case = _case(lambda s: 100 * s, lambda s: 100 * s - 40_000, minutes=60, every=10 * MINUTE)
    assert not isinstance(judge(case), Finding)


def test_a_group_that_stands_is_the_other_rules_matter() -> None:
    assert judge(_case(lambda s: 100 * s, lambda s: 40)) is ABSENT
    assert judge(_case(lambda s: 100 * s, lambda s: 40 * s, states=[a_state("Empty")])) is ABSENT


def test_a_few_minutes_are_too_little() -> None:
    """Too little data."""
    assert missing(judge(_case(lambda s: 100 * s, lambda s: 40 * s, minutes=5)))
    assert missing(judge(a_case()))
