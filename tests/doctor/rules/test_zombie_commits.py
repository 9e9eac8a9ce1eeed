"""KLP210: commits of those who were thrown out."""

import pytest

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.zombie_commits import judge
from kelpie.errors import ErrorCode
from kelpie.observations import EventKind
from tests.doctor.building import MINUTE, NOW, SECOND, a_case, an_event, events, found, missing


@pytest.mark.parametrize("error", [22, 25, 82, 110, 113])
def test_a_refused_commit_names_its_error(error: int) -> None:
    """Whatever the protocol calls it, the member was out."""
    lines = events(EventKind.COMMIT_FAILED, NOW - MINUTE, client_id="app-2", error=error)
    finding = found(judge(a_case(events=lines)))
    assert f"refused commits of app-2, which had been thrown out: {ErrorCode(error).name}" in finding.summary
    assert finding.severity is Severity.WARNING


def test_java_says_it_in_words() -> None:
    """The commit is not even sent."""
    line = an_event(
        EventKind.COMMIT_FAILED,
        client_id="app-2",
        reason="Offset commit cannot be completed since the consumer is not part of an active group for auto "
        "partition assignment; it is likely that the consumer was kicked out of the group.",
    )
    assert found(judge(a_case(events=[line]))).members == ("app-2",)


def test_why_it_was_thrown_out_is_told() -> None:
    """Mostly another finding is the cause."""
    lines = [
        an_event(EventKind.POLL_INTERVAL_EXCEEDED, NOW - MINUTE, client_id="app-2"),
        an_event(EventKind.COMMIT_FAILED, NOW, client_id="app-2", error=25),
    ]
    assert "Before that, its poll() came late (KLP203)." in found(judge(a_case(events=lines))).summary


def test_a_commit_in_the_middle_of_a_rebalance_is_none() -> None:
    """REBALANCE_IN_PROGRESS alone happens to the best; from one who was thrown out it is not."""
    busy = an_event(EventKind.COMMIT_FAILED, NOW, client_id="app-2", error=27)
    assert judge(a_case(events=[busy])) is ABSENT
    expired = an_event(EventKind.SESSION_LOST, NOW - 5 * SECOND, client_id="app-2")
    assert found(judge(a_case(events=[expired, busy]))).members == ("app-2",)


def test_commits_that_failed_for_want_of_a_coordinator_are_none() -> None:
    """They are repeated, and nobody was thrown out."""
    lines = [an_event(EventKind.COMMIT_FAILED, NOW, error=error) for error in (7, 14, 15, 16)]
    assert judge(a_case(events=lines)) is ABSENT


def test_without_a_consumers_log_nobody_can_say() -> None:
    """A refused commit leaves no trace in the cluster."""
    assert missing(judge(a_case(events=events(EventKind.GENERATION_JOINED, NOW))))
    assert judge(a_case(events=events(EventKind.JOINED, NOW))) is ABSENT
