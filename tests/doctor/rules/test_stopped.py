"""KLP310: the group used to commit, and does not any more."""

from dataclasses import replace
from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.positions import IllPeriod
from kelpie.doctor.rules.stopped import judge
from kelpie.observations import Commit, LogEnds
from tests.doctor.building import (
    DAY,
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

EMPTY = a_state("Empty")
LAST = NOW - 12 * MINUTE


def _history(begin: int = LAST - HOUR, last: int = LAST, every: int = 5 * SECOND) -> list[Commit]:
    return commits(*((at, number) for number, at in enumerate(range(begin, last + 1, every))))


def _case(history: list[Commit], *ends: LogEnds, **fields: Any) -> Case:
    own = {"states": [EMPTY], "history_from": NOW - DAY, **looks(a_committed(history[-1].offset)), **fields}
    return a_case(cluster=a_cluster(ends=ends), commits=history, **own)


def test_a_group_that_nobody_is_in_has_stopped() -> None:
    """It committed every 5 s, and for 12 minutes it has not."""
    finding = found(judge(_case(_history(), an_end(4120))))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing has stopped: its last commit was 12 min ago, and before that it committed every 5 s; "
        "it has no members; 3,400 records wait in orders-0."
    )
    assert finding.since == LAST
    assert finding.remedies[1].command.endswith("--group billing --delete")


def test_silent_members_are_worse() -> None:
    """They hold their partitions, and nobody takes over."""
    state = a_state("Stable", a_member("app-1", 0))
    finding = found(judge(_case(_history(), an_end(4120, last_written=NOW - MINUTE), states=[state])))
    assert finding.severity is Severity.CRITICAL
    assert "1 member is there, and silent" in finding.summary
    assert finding.members == ("app-1",)


def test_a_member_that_may_commit_rarely_is_no_alarm_before_its_poll_limit() -> None:
    """One that commits every four minutes looks the same until it has committed three times."""
    member = a_state("Stable", a_member("app-1", 0))

    def after(minutes: float, *earlier: float) -> Case:
        times = [NOW - round((minutes + before) * MINUTE) for before in (*earlier, 0)]
        history = commits(*((at, 100 * number) for number, at in enumerate(times)))
        ends = (an_end(4000, at=times[-1]), an_end(4120, last_written=NOW))
        return _case(history, *ends, states=[member])

    expected = {2.5: Severity.NOTICE, 4.9: Severity.NOTICE, 5: Severity.WARNING, 14.9: Severity.WARNING}
    for minutes, severity in expected.items():
        finding = found(judge(after(minutes, 4)))
        assert finding.severity is severity, minutes
        assert finding.summary.endswith("How often it commits is not known yet: it may commit rarely.")
    certain = found(judge(after(15, 4)))
    assert certain.severity is Severity.CRITICAL
    assert certain.summary.endswith("1 member is there, and silent; 4,020 records wait in orders-0.")
    # It is known now: 13 min are more than three times what is usual, and 11 min are not.
    known = found(judge(after(13, 12, 8, 4)))
    assert known.severity is Severity.CRITICAL
    assert "before that it committed every 4 min; 1 member" in known.summary
    assert judge(after(11, 12, 8, 4)) is ABSENT


def test_a_group_that_has_read_all_has_not_stopped() -> None:
    """Near miss: nothing waits, or only the marker of a transaction."""
    assert judge(_case(_history(), an_end(720))) is ABSENT
    assert judge(_case(_history(), an_end(721))) is ABSENT


def test_a_pause_that_is_usual_is_worth_a_notice() -> None:
    """A job that runs every hour. But a group for which records wait, and that does not move, is never OK."""
    runs = [
        row for hour in range(6, 0, -1) for row in _history(LAST - hour * HOUR, LAST - hour * HOUR + MINUTE)
    ]
    runs += _history(LAST - MINUTE)
    finding = found(judge(_case(runs, an_end(4120))))
    assert finding.severity is Severity.NOTICE
    assert finding.summary.endswith("It has paused for as long 6 times before: that may be how it works.")
    ill = tuple(
        IllPeriod(LAST - hour * HOUR + MINUTE, LAST - hour * HOUR + 2 * MINUTE) for hour in range(6, 0, -1)
    )
    found_ill = found(judge(replace(_case(runs, an_end(4120)), ill=ill)))
    assert found_ill.severity is Severity.WARNING
    assert "that may be how it works" not in found_ill.summary


def test_silent_members_are_no_pause_however_usual() -> None:
    """A job that has ended leaves no member behind. A consumer that is stopped for the third time does."""
    starts = [LAST - number * HOUR for number in range(4, 0, -1)]
    runs = [row for start in starts for row in _history(start, start + MINUTE)]
    state = a_state("Stable", a_member("app-1", 0))
    case = _case([*runs, *_history(LAST - MINUTE)], an_end(4120, last_written=LAST), states=[state])
    assert found(judge(case)).severity is Severity.WARNING


def test_records_that_have_just_come_are_no_alarm_however_long_the_group_was_idle() -> None:
    """The topic was quiet for an hour. What counts is how long records wait, not how long there were none."""
    state = a_state("Stable", a_member("app-1", 0))
    ends = (an_end(720, at=NOW - 17 * SECOND), an_end(760, at=NOW - 16 * SECOND), an_end(780))
    idle = _history(NOW - 2 * HOUR, NOW - HOUR)
    assert found(judge(_case(idle, *ends, states=[state]))).severity is Severity.WARNING
    assert found(judge(_case(idle, *ends))).severity is Severity.NOTICE


def test_the_pause_between_two_commits_is_no_stop() -> None:
    """Near miss: the last commit is 10 s old, twice the usual pause."""
    assert judge(_case(_history(last=NOW - 10 * SECOND), an_end(9999))) is ABSENT


def test_a_single_commit_and_lag_is_no_stop() -> None:
    """Somebody set an offset for a group that has never run."""
    case = _case(commits((NOW - HOUR, 100)), an_end(4000))
    assert missing(judge(case)) == (
        "whether it ever consumed: fewer than three commits are known, and no members",
    )


def test_members_that_have_seen_nothing_wait_are_not_judged_too_early() -> None:
    """The records may have come this second."""
    state = a_state("Stable", a_member("app-1", 0))
    assert missing(judge(_case(_history(), an_end(4120), states=[state])))[0].startswith("a second look")


def test_two_surveys_show_it_without_history_if_nobody_is_there() -> None:
    """The log has grown, and the offset has not moved."""
    case = a_case(
        cluster=a_cluster(ends=[an_end(900, at=NOW - MINUTE), an_end(1200)]),
        **looks(a_committed(700, at=NOW - MINUTE), a_committed(700)),
        states=[EMPTY],
    )
    assert "nothing was committed for 1 min at least" in found(judge(case)).summary


def test_one_survey_without_history_says_too_little() -> None:
    """No data is undetermined, never well."""
    case = a_case(cluster=a_cluster(ends=[an_end(1200)]), **looks(a_committed(700)), states=[EMPTY])
    assert len(missing(judge(case))) == 2
    assert missing(judge(a_case())) == ("its committed offsets",)


def test_within_the_first_minute_a_stop_is_a_grade_lower() -> None:
    """Whoever is restarted, or busy with a large batch, looks the same."""
    history = _history(last=NOW - 40 * SECOND)
    assert found(judge(_case(history, an_end(9999)))).severity is Severity.NOTICE
    state = a_state("Stable", a_member("app-1", 0))
    silent = _case(history, an_end(9999, last_written=NOW - 30 * SECOND), states=[state])
    assert found(judge(silent)).severity is Severity.WARNING


def test_a_coordinator_that_cannot_be_reached_is_the_other_rules_matter() -> None:
    """KLP105: what an earlier survey saw of the group says nothing about now."""
    case = _case(_history(), an_end(4120))
    partition = case.offsets_partition
    assert partition is not None
    leader = case.cluster.view(partition)
    assert leader is not None
    broker = replace(case.cluster.brokers[leader.leader], alive=None, reason="it did not answer")
    cluster = replace(case.cluster, brokers={**case.cluster.brokers, leader.leader: broker})
    assert missing(judge(replace(case, cluster=cluster)))[0].endswith("(KLP101, KLP105)")
