"""KLP301: a partition with records, and no committed offset in it."""

from typing import Any

import pytest

from kelpie.cluster.topics import Recreation, Topics
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.no_committed_offset import judge
from kelpie.observations import EventKind, LogEnds, TopicView
from kelpie.observations.earlier import EARLIER_SURVEY
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
    an_answer,
    an_end,
    an_event,
    commits,
    found,
    looks,
    missing,
)

TOLD = an_answer(asked="OffsetFetch")
BOTH = a_state("Stable", a_member("app-1", 0, 1))


def _grown(new: Any, **fields: Any) -> Case:
    """A group that reads orders-0 for an hour, and orders-1 since it was added."""
    history = commits(*((NOW - at * 5 * SECOND, 1000 - at) for at in range(720, 0, -1)))
    if "cluster" not in fields:
        fields["cluster"] = a_cluster(ends=[an_end(1000), new])
    return a_case(
        **looks(a_committed(1000)),
        **{"states": [BOTH], "answers": [TOLD], "commits": history, "history_from": NOW - HOUR, **fields},
    )


def test_records_of_a_new_partition_are_skipped_by_the_default_policy() -> None:
    """Partitions are added to a topic, and their first records are read by nobody."""
    finding = found(judge(_grown(an_end(250, partition=1))))
    assert finding.severity is Severity.WARNING
    assert finding.summary == "Group billing has no committed offset in orders-1, which holds 250 records."
    assert "latest, the default, skips these 250; earliest reads them all" in finding.why
    assert finding.partitions == ("orders-1",)
    assert [remedy.command for remedy in finding.remedies] == [
        f"kelpie reset -b kafka-1:9092 billing {to} --topic orders:1"
        for to in ("--to-earliest", "--to-latest")
    ]


def _look(latest: int, ago_ms: int, partition: int) -> LogEnds:
    return an_end(latest, partition=partition, at=NOW - ago_ms, source=EARLIER_SURVEY)


@pytest.mark.parametrize("is_there", [True, False], ids=["empty", "not yet there"])
def test_the_first_records_of_a_partition_take_a_moment_to_be_committed(is_there: bool) -> None:
    """Near miss, as seen on 4.3.1: the group reads the partition that was added, and is about to commit. What
    is not committed after the usual time is a warning.
    """
    for ago_ms, severity in ((10 * SECOND, Severity.NOTICE), (20 * SECOND, Severity.WARNING)):
        before = [_look(900, ago_ms, 0), *([_look(0, ago_ms, 1)] if is_there else [])]
        new = an_end(3, partition=1)
        cluster = a_cluster(ends=[*before, an_end(1000), new])
        assert found(judge(_grown(new, cluster=cluster))).severity is severity


def test_consumers_see_a_new_partition_within_minutes() -> None:
    """Near miss, as seen with a sink connector: Java's consumers ask for new partitions every 5 min. One that
    nobody took in that time is a warning.
    """
    one = a_state("Stable", a_member("app-1", 0))
    for ago_ms, severity in ((MINUTE, Severity.NOTICE), (10 * MINUTE, Severity.WARNING)):
        ends = [an_end(1000), an_end(40, -1, partition=1, at=NOW - ago_ms), an_end(50, partition=1)]
        assert found(judge(_grown(None, cluster=a_cluster(ends=ends), states=[one]))).severity is severity


def test_a_member_that_just_got_a_new_partition_has_time_to_commit() -> None:
    """Near miss: it was added minutes ago, and the rebalance that deals it out has just ended."""
    for ago_ms, severity in ((10 * SECOND, Severity.NOTICE), (20 * SECOND, Severity.WARNING)):
        before = a_state("Stable", a_member("app-1", 0), at=NOW - ago_ms)
        assert found(judge(_grown(an_end(50, partition=1), states=[before, BOTH]))).severity is severity


def test_a_topic_that_was_created_again_begins_anew() -> None:
    """Near miss, as seen on 4.3.1: its offsets were removed with the old topic. KLP314 says what matters."""
    old, new = (TopicView("orders", topic_id=name, at=NOW - ago) for name, ago in (("a", MINUTE), ("b", 0)))
    for ago_ms, severity in ((10 * SECOND, Severity.NOTICE), (20 * SECOND, Severity.WARNING)):
        created = Recreation("orders", NOW - MINUTE, NOW - ago_ms, (old, new))
        topics = Topics({"orders": (old, new)}, {"orders": created})
        cluster = a_cluster(ends=[an_end(1000), an_end(3, partition=1)], known_topics=topics)
        assert found(judge(_grown(None, cluster=cluster))).severity is severity


def test_an_empty_partition_is_no_matter() -> None:
    """Near miss: no record, nothing to skip."""
    assert judge(_grown(an_end(70, earliest=70, partition=1))) is ABSENT


def test_records_older_than_the_group_are_a_notice() -> None:
    """librdkafka commits nothing where it has read nothing, and the group was never meant to read these."""
    old = an_end(250, partition=1, last_written=NOW - DAY)
    assert found(judge(_grown(old))).severity is Severity.NOTICE


def test_before_3_0_the_ends_of_earlier_times_show_that_records_are_older() -> None:
    """Those releases do not tell the time of the newest record; a quiet partition is no alarm there."""
    new = an_end(250, partition=1)
    quiet, busy = (an_end(at, -1, partition=1, at=NOW - DAY) for at in (250, 100))
    history: dict[str, Any] = {"cluster": a_cluster(ends=[an_end(1000), quiet, new])}
    assert found(judge(_grown(new, **history))).severity is Severity.NOTICE
    history = {"cluster": a_cluster(ends=[an_end(1000), busy, new])}
    assert found(judge(_grown(new, **history))).severity is Severity.WARNING


def test_a_group_that_has_just_begun_is_a_notice() -> None:
    """Its next commit may hold the partition."""
    finding = found(judge(_grown(an_end(250, partition=1), commits=commits((NOW - SECOND, 1000)))))
    assert finding.severity is Severity.NOTICE


def test_with_nobody_there_it_is_a_notice() -> None:
    """Groups that assign partitions by hand commit in some of them only."""
    finding = found(judge(_grown(an_end(250, partition=1), states=[a_state("Empty")])))
    assert finding.severity is Severity.NOTICE


def test_without_an_answer_of_the_coordinator_nobody_can_say() -> None:
    """Nothing told is not nothing committed."""
    assert missing(judge(a_case(states=[BOTH]))) == ("its committed offsets",)


def test_without_ends_nobody_can_say() -> None:
    """Whether the partition holds a record decides."""
    case = a_case(states=[BOTH], answers=[TOLD], **looks(a_committed(1000)))
    assert missing(judge(case)) == ("whether orders-1 holds records",)


def test_a_consumers_log_tells_it_too() -> None:
    """Without a cluster to ask, the line of the client stands for it, until a commit follows."""
    line = an_event(EventKind.NO_COMMITTED_OFFSET, NOW - MINUTE, topic="orders", partition=1)
    finding = found(judge(a_case(events=[line])))
    assert finding.severity is Severity.NOTICE
    assert finding.since == NOW - MINUTE
    since = a_case(events=[line], commits=commits((NOW, 7), partition=1))
    assert missing(judge(since)) == ("its committed offsets",)
