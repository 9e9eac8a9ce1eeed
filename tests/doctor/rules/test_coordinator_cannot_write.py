"""KLP109: the coordinator is there, and cannot write."""

from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.coordinator_cannot_write import judge
from kelpie.errors import ErrorCode
from kelpie.observations import OFFSETS_TOPIC, Event, EventKind
from tests.doctor.building import (
    DAY,
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_member,
    a_state,
    a_view,
    an_event,
    an_offsets_topic,
    commits,
    found,
    missing,
)

HOME = 9
"""The partition of "billing"."""


def _refusals(*seconds_ago: int, error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> list[Event]:
    kind = EventKind.COMMIT_FAILED
    return [an_event(kind, NOW - ago * SECOND, error=error.value, client_id="app-1") for ago in seconds_ago]


def _case(*lines: Event, **fields: Any) -> Case:
    return a_case(**{"states": [a_state("Stable", a_member("app-1", 0))], "events": lines, **fields})


def _of_partition(text: str, ago: int = 10, **fields: Any) -> Event:
    place = {"topic": OFFSETS_TOPIC, "partition": HOME}
    return an_event(
        EventKind.COORDINATOR_REFUSED, NOW - ago * SECOND, group=None, text=text, **place, **fields
    )


def test_commits_that_are_refused_for_long_while_the_coordinator_answers_are_found() -> None:
    finding = found(judge(_case(*_refusals(60, 40, 20, 5))))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing cannot commit: its coordinator answers, and refused 4 commits in 55 s with "
        "COORDINATOR_NOT_AVAILABLE (15)."
    )
    assert finding.partitions == (f"{OFFSETS_TOPIC}-{HOME}",)
    assert found(judge(a_case(events=_old()))).severity is Severity.NOTICE


def _old() -> list[Event]:
    day = DAY // SECOND
    return _refusals(day + 60, day + 40, day)


def test_some_refusals_in_a_failover_are_healthy() -> None:
    """Near miss: two, or within seconds, or followed by a commit or a join."""
    assert judge(_case(*_refusals(60, 5))) is ABSENT
    assert judge(_case(*_refusals(20, 15, 10, 5))) is ABSENT
    later = commits((NOW - 3 * MINUTE, 1), (NOW - 2 * SECOND, 2))
    assert judge(_case(*_refusals(60, 40, 20, 5), commits=later)) is ABSENT
    joined = an_event(EventKind.JOINED, NOW - SECOND)
    assert judge(_case(*_refusals(60, 40, 20, 5), joined)) is ABSENT


def test_too_few_replicas_in_sync_are_the_business_of_another_rule() -> None:
    """KLP106 names the replicas that are missing."""
    views = [*an_offsets_topic(), a_view(HOME, 1, (1, 2), (1,))]
    settings = {(f"topic {OFFSETS_TOPIC}", "min.insync.replicas"): "2"}
    cluster = a_cluster(*(view for view in views if view.partition != HOME), views[-1], settings=settings)
    assert judge(_case(*_refusals(60, 40, 20, 5), cluster=cluster)) is ABSENT


def test_a_coordinator_that_says_that_it_could_not_write_or_load_is_found() -> None:
    """What it says of the group, or of the partition that all its groups share."""
    line = an_event(
        EventKind.COORDINATOR_REFUSED, NOW - 10 * SECOND, error=10, reason="RecordTooLargeException"
    )
    large = found(judge(_case(line)))
    assert "cannot write its records (RecordTooLargeException)" in large.summary
    assert "max.message.bytes" in large.remedies[0].text
    full = _of_partition("Error while appending records: No space left on device")
    disk = found(judge(_case(cluster=a_cluster(events=(full,)))))
    assert "Make room" in disk.remedies[0].text
    failed = _of_partition("Failed to load metadata from __consumer_offsets-9")
    load = found(judge(_case(cluster=a_cluster(events=(failed,)))))
    assert "could not load its partition" in load.summary
    loaded = an_event(
        EventKind.COORDINATOR_LOADED, NOW - SECOND, group=None, topic=OFFSETS_TOPIC, partition=HOME
    )
    assert not isinstance(judge(_case(cluster=a_cluster(events=(failed, loaded)))), type(load))


def test_without_logs_it_is_undetermined_unless_the_group_has_just_committed() -> None:
    assert len(missing(judge(_case()))) == 2
    assert judge(_case(commits=commits((NOW - 3 * MINUTE, 1), (NOW - 20 * SECOND, 2)))) is ABSENT
