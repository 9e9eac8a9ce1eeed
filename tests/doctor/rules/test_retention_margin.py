"""KLP313: retention will reach the group."""

from dataclasses import replace
from typing import Any

import pytest

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Severity
from kelpie.doctor.rules.retention_margin import judge
from kelpie.observations import LogEnds
from tests.doctor.building import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
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

A_DAY = {("topic orders", "retention.ms"): str(DAY)}


def _case(moments: list[tuple[int, int]], *ends: LogEnds, settings: Any = None) -> Case:
    return a_case(
        cluster=a_cluster(ends=ends, settings=A_DAY if settings is None else settings),
        commits=commits(*moments),
        **looks(a_committed(moments[-1][1])),
        states=[a_state("Stable", a_member("app-1", 0))],
        history_from=moments[0][0],
    )


def _grows(begin: int, finish: int, hours: int = 20, *, earliest: int = 0) -> list[LogEnds]:
    """A look an hour, at a log that grows evenly."""
    return [
        an_end(begin + (finish - begin) * at // hours, earliest, at=NOW - (hours - at) * HOUR)
        for at in range(hours + 1)
    ]


def test_a_slow_group_is_told_when_it_will_lose_records() -> None:
    """It reads half of what is written, and is 12 of 24 hours behind."""
    moments = [(NOW - (20 - at) * HOUR, 1000 + 400 * at) for at in range(21)]
    finding = found(judge(_case(moments, *_grows(1000, 21_000))))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing will lose records of orders-0 in 20 h at the earliest: the next record to read is "
        "12 h old, and the topic keeps 1 d; it reads 0.111 records a second, and 12,000 records wait."
    )
    assert "retention.ms" in finding.remedies[0].command


def test_steady_growth_is_noticed_long_before() -> None:
    """Burrow calls that a warning unless lag dipped once; here one dip does not hide it."""
    moments = [(NOW - (240 - at) * 5 * MINUTE, 1000 + 75 * at) for at in range(241)]
    dip = moments[120][1] + 500
    moments[120:] = [(at, max(offset, dip)) for at, offset in moments[120:]]
    finding = found(judge(_case(moments, *_grows(1000, 21_000))))
    assert finding.severity is Severity.NOTICE
    assert "if that goes on, but not within 1 d:" in finding.summary, "no forecast goes beyond the retention"


def test_a_group_without_members_is_a_notice_at_most() -> None:
    """Groups that nobody needs any more fall behind for ever; nobody is to be woken for them."""
    moments = [(NOW - (20 - at) * HOUR, 1000 + 10 * at) for at in range(21)]
    case = replace(_case(moments, *_grows(1000, 24_000)), states=(a_state("Empty"),))
    finding = found(judge(case))
    assert finding.severity is Severity.NOTICE
    assert "Nobody is in the group: it is abandoned, or has stopped." in finding.summary
    assert finding.remedies[-1].command.endswith("--group billing --delete")


def test_a_group_that_reads_in_bursts_is_not_told_as_falling_behind_between_two() -> None:
    """It was as far behind half a day ago, and had read all of it an hour later."""
    bursts = [(NOW - 27 * HOUR, 1000), (NOW - 13 * HOUR, 15_000)]
    ends = _grows(1000, 28_000, hours=27)
    assert found(judge(_case(bursts, *ends))).severity is Severity.NOTICE
    creeps = [(NOW - (27 - at) * HOUR, 1000 + 520 * at) for at in range(28)]
    assert found(judge(_case(creeps, *ends))).severity is Severity.WARNING


def test_a_rate_of_some_minutes_says_nothing_about_a_day() -> None:
    """Between two batches no group moves."""
    moments = [(NOW - (30 - at) * MINUTE, 1000 + at) for at in range(31)]
    ends = [an_end(14_000, at=NOW - 30 * MINUTE), an_end(15_000)]
    assert missing(judge(_case(moments, *ends)))


def test_a_group_that_catches_up_loses_nothing() -> None:
    """Near miss: as far behind, but faster than producers."""
    moments = [(NOW - (20 - at) * HOUR, 1000 + 950 * at) for at in range(21)]
    assert judge(_case(moments, *_grows(21_000, 31_000))) is ABSENT


def test_a_group_that_keeps_pace_loses_nothing() -> None:
    """Near miss: an hour behind, and it stays so."""
    moments = [(NOW - (20 - at) * HOUR, 1000 * at) for at in range(21)]
    assert judge(_case(moments, *_grows(1000, 21_000))) is ABSENT


def test_a_log_start_that_comes_closer_is_seen_without_settings() -> None:
    """retention.bytes: nobody can tell the time, but the beginning of the log moves."""
    ends = [an_end(10_000, 2000, at=NOW - 10 * MINUTE), an_end(11_000, 3000)]
    moments = [(NOW - (10 - at) * MINUTE, 3500 + 10 * at) for at in range(11)]
    finding = found(judge(_case(moments, *ends, settings={})))
    assert finding.severity is Severity.CRITICAL
    assert "in 6.67 min at the earliest: the log begins 600 records before its offset" in finding.summary


def test_what_a_streams_application_deletes_it_has_read() -> None:
    """Near miss, as seen on 4.3.1: a repartition topic begins where the application has committed."""
    for topic, is_found in (("billing-counts-repartition", False), ("orders", True)):
        ends = [an_end(10_000, 2000, at=NOW - 10 * MINUTE), an_end(11_000, 3000)]
        limits = {(f"topic {topic}", name): "-1" for name in ("retention.ms", "retention.bytes")}
        history = commits(*((NOW - (10 - at) * MINUTE, 3500 + 10 * at) for at in range(11)), topic=topic)
        case = a_case(
            cluster=a_cluster(ends=[end._replace(topic=topic) for end in ends], settings=limits),
            commits=history,
            **looks(a_committed(3600, topic=topic)),
            states=[a_state("Stable", a_member("app-1", 0, topic=topic))],
            history_from=NOW - HOUR,
        )
        assert isinstance(judge(case), Finding) is is_found


def test_what_is_kept_for_ever_is_not_lost() -> None:
    """Compacted topics, and those without any retention."""
    moments = [(NOW - (20 - at) * HOUR, 1000 + 400 * at) for at in range(21)]
    compacted = {**A_DAY, ("topic orders", "cleanup.policy"): "compact"}
    assert judge(_case(moments, *_grows(1000, 21_000), settings=compacted)) is ABSENT
    ever = {("topic orders", "retention.ms"): "-1", ("topic orders", "retention.bytes"): "-1"}
    assert judge(_case(moments, *_grows(1000, 21_000), settings=ever)) is ABSENT


@pytest.mark.parametrize("value", ["²", "9" * 5000])
def test_a_setting_that_is_no_number_is_no_retention(value: str) -> None:
    """A broker may say anything. Python calls both of them digits, and cannot read them as a number."""
    moments = [(NOW - (20 - at) * HOUR, 1000 + 400 * at) for at in range(21)]
    settings = {("topic orders", "retention.ms"): value}
    assert not isinstance(judge(_case(moments, *_grows(1000, 21_000), settings=settings)), Finding)


def test_one_look_says_too_little() -> None:
    """Rates need two."""
    assert missing(judge(_case([(NOW - HOUR, 10), (NOW, 20)], an_end(500))))[0].startswith("a second look")
    assert missing(judge(a_case())) == ("its committed offsets",)
