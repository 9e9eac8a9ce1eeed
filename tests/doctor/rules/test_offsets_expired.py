"""KLP302: the coordinator removed offsets because they were too old."""

from dataclasses import replace
from typing import Any

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.offsets_expired import judge
from kelpie.observations import Commit, EventKind, Unasked
from kelpie.observations.positions import NO_OFFSET
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
    an_answer,
    an_end,
    an_event,
    commits,
    found,
    looks,
    missing,
)

AWAY = commits((NOW - 9 * DAY, 900), (NOW - 8 * DAY, 1000), (NOW - HOUR, NO_OFFSET))
"""A group that was away for longer than its offsets are kept."""


def test_offsets_that_are_gone_after_the_retention_have_expired() -> None:
    """Nobody logs it, and the consumers start somewhere else when they come back."""
    case = a_case(cluster=a_cluster(ends=[an_end(4000)]), commits=AWAY, history_from=NOW - 9 * DAY)
    finding = found(judge(case))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing has lost its committed offsets in orders-0: they expired at 2027-01-15 07:00:00 UTC, "
        "7 d 23 h after the last commit."
    )
    assert "skips 3,000 records" in finding.why
    assert finding.remedies[0].command.endswith("--topic orders:0 --reset-offsets --to-offset 1000 --dry-run")


def test_offsets_that_are_gone_before_their_time_were_deleted() -> None:
    """Near miss: kafka-consumer-groups --delete leaves the same records, only sooner."""
    history = commits((NOW - 2 * DAY, 1000), (NOW - HOUR, NO_OFFSET))
    assert judge(a_case(commits=history, history_from=NOW - 2 * DAY)) is ABSENT


def test_the_brokers_own_retention_counts() -> None:
    """offsets.retention.minutes is often raised, and was a day before 2.0."""
    history = commits((NOW - 2 * DAY, 1000), (NOW - HOUR, NO_OFFSET))
    cluster = a_cluster(settings={("broker", "offsets.retention.minutes"): "1440"})
    found(judge(a_case(cluster=cluster, commits=history, history_from=NOW - 2 * DAY)))


def test_a_commit_may_ask_for_its_own_retention() -> None:
    """Clients up to 2.0 could; it wins over the brokers'."""
    kept = Commit("billing", "orders", 0, 1000, NOW - 2 * HOUR, expires=NOW - HOUR)
    removal = commits((NOW - 30 * MINUTE, NO_OFFSET))
    found(judge(a_case(commits=[kept, *removal], history_from=NOW - DAY)))


def test_a_deletion_by_hand_is_told_by_the_brokers_log() -> None:
    """Near miss: it came after the retention, but somebody did it."""
    line = an_event(EventKind.GROUP_REMOVED, NOW - HOUR, reason="deleted")
    assert judge(a_case(commits=AWAY, events=[line], history_from=NOW - 9 * DAY)) is ABSENT


def test_once_the_group_has_committed_again_it_is_history() -> None:
    """It still explains a gap: the finding says what was skipped."""
    case = a_case(commits=[*AWAY, *commits((NOW - MINUTE, 4000))], history_from=NOW - 9 * DAY)
    finding = found(judge(case))
    assert finding.severity is Severity.NOTICE
    assert finding.until == NOW - MINUTE
    assert "skipped up to 3,000 records" in finding.summary


def test_topics_that_members_have_left_expire_as_they_should() -> None:
    """Since 2.4 offsets of topics expire to which nobody in a living group subscribes."""
    state = a_state("Stable", a_member("app-1", 0, topic="payments"))
    assert judge(a_case(commits=AWAY, states=[state], history_from=NOW - 9 * DAY)) is ABSENT


def test_a_removal_without_its_commit_says_too_little() -> None:
    """Compaction keeps the removal for a day and the commit not at all."""
    case = a_case(commits=commits((NOW - HOUR, NO_OFFSET)), history_from=NOW - DAY)
    assert missing(judge(case)) == (
        "whether the offsets of orders-0 expired or were deleted: their commits are gone",
    )


def test_without_history_nobody_can_say_unless_all_is_there() -> None:
    """An offset that is there has not expired."""
    assert missing(judge(a_case())) == ("the history of its commits: read access to __consumer_offsets",)
    told = an_answer(asked="OffsetFetch")
    state = a_state("Stable", a_member("app-1", 0))
    assert judge(a_case(states=[state], answers=[told], **looks(a_committed(1000)))) is ABSENT


def test_a_history_that_was_read_in_part_leaves_open_what_was_before() -> None:
    """Only the end of the partition was read: an expiry before it cannot be seen."""
    cluster = a_cluster(ends=[an_end(4000)])
    home = str(cluster.home_of("billing"))
    cut = replace(cluster, unasked=(Unasked("history", home, "Only its end was read."),))
    told: dict[str, Any] = {"answers": [an_answer(asked="OffsetFetch")], "history_from": NOW - HOUR}
    reads: dict[str, Any] = {"states": [a_state("Stable", a_member("app-1", 0))], **told}
    (what,) = missing(judge(a_case(cluster=cut, **reads)))
    assert what.startswith(
        f"whether offsets expired before the part of {home} that was read, which begins at"
    )
    assert judge(a_case(cluster=cluster, **reads)) is ABSENT, "it was read from its beginning"
    assert judge(a_case(cluster=cut, committed=[a_committed(10)], **reads)) is ABSENT, "nothing is missing"
