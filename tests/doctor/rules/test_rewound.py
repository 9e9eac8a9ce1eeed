"""KLP308: the committed offset went back."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.rewound import judge, rewound
from kelpie.model.names import TopicPartition
from kelpie.observations.positions import NO_OFFSET
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
    by_partition,
    commits,
    found,
    looks,
    missing,
)

READ = commits((NOW - HOUR, 2000), (NOW - 30 * MINUTE, 3000), leader_epoch=2)


def test_a_reset_by_a_tool_is_known_by_its_missing_leader_epoch() -> None:
    """kafka-consumer-groups --reset-offsets --to-earliest, on the wrong group."""
    case = a_case(commits=[*READ, *commits((NOW - MINUTE, 0))], history_from=NOW - HOUR)
    finding = found(judge(case))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing was set back in orders-0 from 3000 to 0, at 2027-01-15 07:59:00 UTC by a tool: "
        "3,000 records to be read again."
    )
    assert finding.since == NOW - MINUTE
    assert finding.remedies[0].command.endswith("--topic orders:0 --reset-offsets --to-offset 3000 --dry-run")


def test_what_is_still_ahead_is_counted() -> None:
    """A consumer is on its way through what it has read before."""
    history = [*READ, *commits((NOW - MINUTE, 1000), (NOW - SECOND, 1800), leader_epoch=2)]
    finding = found(judge(a_case(commits=history, history_from=NOW - HOUR)))
    assert "2,000 records to be read again; 1,200 records of them are still ahead" in finding.summary
    assert "by a consumer or a tool" in finding.summary


def test_commits_that_arrive_late_are_no_rewind_yet() -> None:
    """Near miss: after a failover older commits are sent again. If it lasts, or a tool did it, it is one."""
    state = a_state("Stable", a_member("app-1", 0))
    late = [*READ, *commits((NOW - 400, 2998), (NOW - 200, 2997), leader_epoch=2)]
    assert "a second look" in missing(judge(a_case(commits=late, states=[state], history_from=NOW - HOUR)))[0]
    lasting = [*READ, *commits((NOW - 6 * SECOND, 2998), (NOW - 200, 2999), leader_epoch=2)]
    assert found(judge(a_case(commits=lasting, states=[state], history_from=NOW - HOUR)))
    by_tool = [*READ, *commits((NOW - 400, 2998))]
    assert found(judge(a_case(commits=by_tool, states=[state], history_from=NOW - HOUR)))


def test_late_commits_of_a_consumer_in_no_group_are_no_rewind_yet() -> None:
    """Near miss, as seen on 2.8.2 when a broker was replaced: a consumer that assigns its partitions itself
    sent a commit of 906 again, after one of 907.
    """
    late = [*READ, *commits((NOW - 400, 2998), (NOW - 200, 2997), leader_epoch=2)]
    case = a_case(commits=late, states=[a_state("Empty", protocol_type="")], history_from=NOW - HOUR)
    assert case.commits_without_joining
    assert "a second look" in missing(judge(case))[0]
    by_tool = [*READ, *commits((NOW - 400, 2998))]
    assert found(judge(replace(case, commits=by_partition(by_tool))))


def test_what_has_been_regained_is_over() -> None:
    """Near miss: it is past where it was."""
    history = [*READ, *commits((NOW - MINUTE, 0), (NOW, 3000))]
    assert judge(a_case(commits=history, history_from=NOW - HOUR)) is ABSENT


def test_after_a_removal_a_lower_offset_is_no_rewind() -> None:
    """The group was deleted, or its offsets expired: that is another finding, or nobody's business."""
    history = [*READ, *commits((NOW - MINUTE, NO_OFFSET), (NOW, 0))]
    assert judge(a_case(commits=history, history_from=NOW - HOUR)) is ABSENT


def test_another_log_is_no_rewind() -> None:
    """A topic that was created anew begins at 0 with a lower leader epoch, or ends before the old offset."""
    anew = [*READ, *commits((NOW, 5), leader_epoch=0)]
    assert judge(a_case(commits=anew, history_from=NOW - HOUR)) is ABSENT
    shorter = a_cluster(ends=[an_end(40)])
    history = [*READ, *commits((NOW, 5))]
    assert judge(a_case(cluster=shorter, commits=history, history_from=NOW - HOUR)) is ABSENT


def test_a_log_that_ended_before_the_highest_offset_and_has_grown_since_is_another_one() -> None:
    """Near miss, as seen on 4.3.1: a member committed its old position in the new topic, and began anew."""
    history = [*READ, *commits((NOW - MINUTE, 5), leader_epoch=2)]
    ends = [an_end(40, at=NOW - 2 * MINUTE), an_end(9000)]
    assert judge(a_case(cluster=a_cluster(ends=ends), commits=history, history_from=NOW - HOUR)) is ABSENT
    before = [an_end(40, at=NOW - 40 * MINUTE), an_end(40, -1, at=NOW - 2 * MINUTE), an_end(9000)]
    assert found(judge(a_case(cluster=a_cluster(ends=before), commits=history, history_from=NOW - HOUR)))


def test_a_topic_that_the_group_has_left_is_no_matter() -> None:
    """Somebody may have tidied up."""
    state = a_state("Stable", a_member("app-1", 0, topic="payments"))
    history = [*READ, *commits((NOW, 5))]
    case = a_case(commits=history, states=[state], **looks(a_committed(5)), history_from=NOW - HOUR)
    assert judge(case) is ABSENT


def test_two_surveys_show_it_without_history() -> None:
    """Where __consumer_offsets may not be read."""
    finding = found(judge(a_case(**looks(a_committed(3000, at=NOW - HOUR), a_committed(1000)))))
    assert finding.partitions == ("orders-0",)


def test_one_survey_without_history_says_too_little() -> None:
    """Both ways out are named."""
    assert missing(judge(a_case(**looks(a_committed(3000))))) == (
        "the history of its commits: read access to __consumer_offsets",
        "a second look at it: run the doctor again in a while, or with --watch",
    )


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_a_rewind_is_what_lies_between_the_peak_and_now(offsets: list[int]) -> None:
    """Whatever happened before, only what has not been regained counts."""
    history = commits(*((NOW - HOUR + at, offset) for at, offset in enumerate(offsets)))
    rewind = rewound(a_case(commits=history).track(TopicPartition("orders", 0)))
    if offsets[-1] == max(offsets):
        assert rewind is None
    else:
        assert rewind is not None
        assert rewind.left == max(offsets) - offsets[-1]
        assert rewind.number > 0
