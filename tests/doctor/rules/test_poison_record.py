"""KLP317: a record that a group cannot get over."""

from dataclasses import replace
from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.causes import linked
from kelpie.doctor.finding import ABSENT, Finding, Severity
from kelpie.doctor.rules import rules, stalled
from kelpie.doctor.rules.poison_record import judge
from kelpie.observations import Commit, Event, EventKind
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
    an_event,
    commits,
    events,
    found,
    looks,
    missing,
)

PLACE: dict[str, Any] = {"topic": "orders", "partition": 0, "client_id": "app-1"}
PEEK = ["kelpie", "peek", "-b", "kafka-1:9092", "orders", "0", "700"]


def _failures(*ago: int, offset: int = 700) -> list[Event]:
    moments = [NOW - ms for ms in ago]
    return events(EventKind.RECORD_UNREADABLE, *moments, offset=offset, reason="Error deserializing", **PLACE)


def _history(partition: int, stands_since: int = NOW + 1, at_offset: int = 700) -> list[Commit]:
    """A commit every 5 s for an hour that moves on, until it stands."""
    first = NOW - HOUR
    times = range(first, NOW + 1, 5 * SECOND)
    moments = [(at, at_offset if at >= stands_since else (at - first) // 6000) for at in times]
    return commits(*moments, partition=partition)


def _two_partitions(stood_ms: int, **fields: Any) -> Case:
    """One member with two partitions; it stands in the first, and reads the second."""
    history = [*_history(0, NOW - stood_ms), *_history(1)]
    last = {row.partition: row.offset for row in history}
    given = looks(*(a_committed(offset, partition=partition) for partition, offset in last.items()))
    ends = [an_end(900, at=NOW - stood_ms), an_end(1200), an_end(601, partition=1)]
    own = {
        "states": [a_state("Stable", a_member("app-1", 0, 1))],
        "history_from": NOW - HOUR,
        **given,
        **fields,
    }
    return a_case(cluster=a_cluster(ends=ends), commits=history, **own)


def test_a_record_that_logs_name_again_and_again_is_told_with_its_place() -> None:
    """And the first thing to do is to look at it; nothing is skipped."""
    case = a_case(events=_failures(2 * MINUTE, MINUTE))
    finding = found(judge(case))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing cannot get over the record at offset 700 of orders-0: it failed there 2 times, the "
        "last at 2027-01-15 07:59:00 UTC (log of app-1)."
    )
    assert finding.remedies[0].command.split() == PEEK
    assert not any("reset" in remedy.command for remedy in finding.remedies)


def test_with_records_that_wait_behind_it_is_critical_and_explains_the_standstill() -> None:
    """One story: KLP309 says that it stands, this rule says at what."""
    case = _two_partitions(6 * MINUTE, events=_failures(5 * MINUTE, MINUTE))
    finding = found(judge(case))
    assert finding.severity is Severity.CRITICAL
    standstill, cause = linked([found(stalled.judge(case)), finding])
    assert standstill.caused_by == (cause.id,)


def test_a_partition_that_stands_while_its_member_reads_another_is_a_warning() -> None:
    """Without logs the record is but the likely cause."""
    finding = found(judge(_two_partitions(6 * MINUTE)))
    assert finding.severity is Severity.WARNING
    assert finding.partitions == ("orders-0",)
    assert "probably it cannot get over a record there" in finding.summary
    assert finding.remedies[0].command.split() == PEEK


def test_a_member_with_a_backlog_may_be_busy_elsewhere() -> None:
    """Seen on real Kafka: a slow consumer read one partition for minutes, then the other."""
    behind = [an_end(1, at=NOW - HOUR, partition=1), an_end(90_000, partition=1)]
    case = _two_partitions(6 * MINUTE)
    busy = replace(case, cluster=a_cluster(ends=[an_end(900, at=NOW - 6 * MINUTE), an_end(1200), *behind]))
    assert isinstance(judge(case), Finding)
    assert not isinstance(judge(busy), Finding)


def test_a_record_that_was_stepped_over_is_no_finding() -> None:
    """Near miss: an error handler logs the record, and goes on (Spring, Streams with LogAndContinue)."""
    case = _two_partitions(6 * MINUTE, events=_failures(5 * MINUTE, MINUTE, offset=699))
    only_the_second = replace(case, committed={}, commits={}, committed_over_time={})
    stepped_over = looks(a_committed(900))
    assert judge(replace(only_the_second, **stepped_over)) is ABSENT


def test_one_line_alone_is_no_finding_where_no_offset_is_known() -> None:
    """Near miss: it may have been handled."""
    assert judge(a_case(events=[*_failures(MINUTE), an_event(EventKind.JOINED)])) is ABSENT


def test_a_partition_that_has_stood_for_a_minute_is_no_finding() -> None:
    """Near miss: a slow batch, a restart. KLP309 tells the standstill."""
    assert not isinstance(judge(_two_partitions(MINUTE)), Finding)


def test_a_member_that_stands_everywhere_is_the_other_rules_matter() -> None:
    """Near miss: a hung member, not a record."""
    history = [*_history(0, NOW - 6 * MINUTE), *_history(1, NOW - 6 * MINUTE, 540)]
    rows = looks(a_committed(700), a_committed(540, partition=1))
    ends = [an_end(900, at=NOW - 6 * MINUTE), an_end(900, at=NOW - 6 * MINUTE, partition=1)]
    later = [an_end(1200), an_end(1200, partition=1)]
    case = _two_partitions(6 * MINUTE)
    cluster = a_cluster(ends=[*ends, *later])
    stuck = a_case(
        cluster=cluster, commits=history, states=case.states, history_from=case.history_from, **rows
    )
    assert judge(stuck) is ABSENT


def test_streams_applications_are_judged_by_logs_alone() -> None:
    """Near miss: Kafka Streams pauses a partition while the other side of a join has nothing."""
    case = _two_partitions(6 * MINUTE)
    state = a_state("Stable", a_member("app-1", 0, 1), protocol="stream", protocol_type="consumer")
    assert judge(replace(case, states=(state,))) is ABSENT


def test_without_logs_and_members_it_is_undetermined() -> None:
    """Too little data."""
    assert missing(judge(a_case())) == ("the logs of its consumers", "who is in the group")


def test_with_one_look_and_no_logs_it_is_undetermined() -> None:
    """Too little data: records wait, and nobody knows for how long."""
    case = a_case(
        cluster=a_cluster(ends=[an_end(900)]),
        states=[a_state("Stable", a_member("app-1", 0))],
        **looks(a_committed(700)),
    )
    assert "the logs of its consumers" in missing(judge(case))


def test_it_has_a_presentation() -> None:
    assert rules()["KLP317"].presentation.of_one == "cannot get over a record"
