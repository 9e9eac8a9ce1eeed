"""KLP102: the coordinator still reads the group's partition."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.coordinator_loading import judge
from kelpie.errors import ErrorCode
from kelpie.observations import CoordinatorAnswer, EventKind
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_name_on,
    a_state,
    an_answer,
    an_event,
    an_offsets_topic,
    commits,
    found,
    missing,
)

GROUP = a_name_on(3)
LOADING = an_answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "DescribeGroups", GROUP)


def log(kind: EventKind, at: int, partition: int = 3) -> object:
    return an_event(kind, at, group=None, partition=partition, node=1, text=f"{kind} of {partition}")


def test_a_coordinator_that_says_so_is_loading() -> None:
    """The group is neither healthy nor lost: it waits. After each election that is so for a moment."""
    finding = found(judge(a_case(GROUP, answers=[LOADING])))
    assert finding.severity is Severity.NOTICE
    assert finding.summary == f"Group {GROUP} waits: broker 1 (kafka-1:9092) is loading __consumer_offsets-3."
    assert finding.evidence[0].text == "DescribeGroups → 14 COORDINATOR_LOAD_IN_PROGRESS"
    assert finding.cause == "__consumer_offsets-3"


def _answered(ago_ms: int, error: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) -> CoordinatorAnswer:
    return an_answer(error, "DescribeGroups", GROUP, at=NOW - ago_ms, source="an earlier survey")


def test_how_long_it_has_lasted_decides_how_bad_it_is() -> None:
    """An hour of loading is no matter of seconds, whatever the coordinator says."""
    finding = found(judge(a_case(GROUP, answers=[_answered(60 * MINUTE), LOADING])))
    assert finding.severity is Severity.CRITICAL
    assert "for at least 1 h now" in finding.summary
    assert finding.since == NOW - 60 * MINUTE
    assert "kafka-log-dirs" in finding.remedies[0].command
    some = found(judge(a_case(GROUP, answers=[_answered(20 * SECOND), LOADING])))
    assert some.severity is Severity.WARNING
    moment = found(judge(a_case(GROUP, answers=[_answered(4 * SECOND), LOADING])))
    assert moment.severity is Severity.NOTICE


def test_two_short_loads_are_not_one_long_load() -> None:
    """Near miss: the coordinator answered in between, or the group committed."""
    first = _answered(60 * MINUTE)
    served = a_state(group=GROUP, at=NOW - 30 * MINUTE)
    assert found(judge(a_case(GROUP, answers=[first, LOADING], states=[served]))).since == NOW
    committed = commits((NOW - 10 * MINUTE, 5), group=GROUP)
    assert found(judge(a_case(GROUP, answers=[first, LOADING], commits=committed))).since == NOW


def test_a_state_with_that_error_will_do() -> None:
    """Old surveys have no answers apart from states."""
    state = a_state("", group=GROUP, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert found(judge(a_case(GROUP, states=[state])))


def test_a_coordinator_that_has_answered_since_is_not() -> None:
    """Near miss: it was loading in the last survey."""
    case = a_case(GROUP, answers=[LOADING], states=[a_state(group=GROUP, at=NOW + SECOND)])
    assert judge(case) is ABSENT


def test_a_log_that_begins_to_load_and_does_not_end_tells_how_long() -> None:
    """Minutes mean a partition that nobody compacts."""
    cluster = a_cluster(events=(log(EventKind.COORDINATOR_LOADING, NOW - 10 * MINUTE),))
    finding = found(judge(a_case(GROUP, cluster)))
    assert finding.severity is Severity.CRITICAL
    assert finding.since == NOW - 10 * MINUTE
    assert "for 10 min now" in finding.summary
    assert "kafka-log-dirs" in finding.remedies[0].command


def test_a_log_that_ends_to_load_does_not() -> None:
    """Near miss: every election writes both lines."""
    told = (log(EventKind.COORDINATOR_LOADING, NOW - MINUTE), log(EventKind.COORDINATOR_LOADED, NOW - SECOND))
    case = a_case(GROUP, a_cluster(events=told), states=[a_state(group=GROUP)])
    assert judge(case) is ABSENT


def test_the_load_of_another_partition_does_not_count() -> None:
    """Near miss: lines name the partition."""
    told = (log(EventKind.COORDINATOR_LOADING, NOW - MINUTE, partition=4),)
    assert missing(judge(a_case(GROUP, a_cluster(events=told))))


def test_without_an_answer_nobody_knows() -> None:
    """The coordinator is there, and was not asked."""
    assert missing(judge(a_case(GROUP))) == ("an answer of the group's coordinator",)


def test_without_a_leader_nobody_loads() -> None:
    """KLP101 says what is wrong; this one has nothing to add."""
    assert judge(a_case(GROUP, a_cluster(*an_offsets_topic(p3=-1)))) is ABSENT
