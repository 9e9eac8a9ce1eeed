"""KLP320: commits that are refused for their size."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.offset_metadata_too_large import judge
from kelpie.errors import ErrorCode
from kelpie.evidence.logs import read_log
from kelpie.observations import EventKind
from tests.doctor.building import DAY, NOW, a_case, a_cluster, an_event, events, found, missing

LIMIT = {("broker", "offset.metadata.max.bytes"): "4096"}


def test_a_commit_that_is_refused_for_its_metadata_is_found() -> None:
    lines = events(EventKind.COMMIT_FAILED, NOW - 2000, NOW - 1000, error=12, client_id="app-1")
    finding = found(judge(a_case(cluster=a_cluster(settings=LIMIT), events=lines)))
    assert finding.severity is Severity.WARNING
    assert "commits of app-1 were refused as too large, OFFSET_METADATA_TOO_LARGE (12)" in finding.summary
    assert any("offset.metadata.max.bytes=4096" in each.text for each in finding.evidence)


def test_one_that_is_a_day_old_is_a_notice() -> None:
    lines = events(EventKind.COMMIT_FAILED, NOW - DAY, error=28)
    assert found(judge(a_case(events=lines))).severity is Severity.NOTICE


def test_commits_that_fail_in_a_rebalance_are_another_matter() -> None:
    """Near miss: a rolling restart."""
    error = ErrorCode.REBALANCE_IN_PROGRESS.value
    assert judge(a_case(events=events(EventKind.COMMIT_FAILED, NOW, error=error))) is ABSENT
    assert judge(a_case(events=[an_event(EventKind.JOINED)])) is ABSENT


def test_without_logs_it_is_undetermined() -> None:
    """Too little data."""
    assert missing(judge(a_case())) == ("the logs of its consumers",)


def test_the_words_of_java_are_read() -> None:
    line = (
        "2026-11-15 20:56:40,123 ERROR [Consumer clientId=c, groupId=g] Offset commit failed on partition "
        "orders-0 at offset 5: The metadata field of the offset request was too large."
    )
    (event,) = read_log([line], "a.log").observations.events
    assert (event.kind, event.error, event.topic) == (EventKind.COMMIT_FAILED, 12, "orders")
