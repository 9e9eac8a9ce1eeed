"""A group's past, from the rows of a case."""

from kelpie.doctor.group_history import Departure, Value, group_history
from kelpie.observations import EventKind, Generation
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
    looks,
)


def test_lag_is_known_at_times_at_which_every_partition_is() -> None:
    """A sum that lacks a partition would look like progress."""
    ends = [
        an_end(100, at=NOW - HOUR),
        an_end(50, partition=1, at=NOW - HOUR + SECOND),
        an_end(150, at=NOW - 30 * MINUTE),  # Nobody told where partition 1 ended.
        an_end(200),
        an_end(80, partition=1),
    ]
    stood = [a_committed(90, at=NOW - 2 * HOUR), a_committed(50, partition=1, at=NOW - 2 * HOUR)]
    case = a_case(
        cluster=a_cluster(ends=ends), **looks(*stood, a_committed(120), a_committed(50, partition=1))
    )
    assert [value.value for value in group_history(case).lag] == [10, 110]


def test_progress_and_commits_are_counted_by_steps_of_time() -> None:
    """Two partitions are committed by one request each ten seconds, each fifty records further."""
    times = [NOW - 5 * MINUTE + 10 * SECOND * number for number in range(31)]
    rows = [
        row
        for partition in (0, 1)
        for row in commits(*((at, 50 * number) for number, at in enumerate(times)), partition=partition)
    ]
    history = group_history(a_case(commits=rows))
    assert {value.value for value in history.records[1:]} == {10.0}, "100 records in ten seconds"
    assert {value.value for value in history.commits[1:]} == {6.0}
    assert history.records[-1].at == NOW


def test_a_reset_to_an_earlier_offset_is_no_progress() -> None:
    rows = commits((NOW - MINUTE, 1000), (NOW - 30 * SECOND, 0), (NOW - 20 * SECOND, 100))
    history = group_history(a_case(commits=rows))
    assert min(value.value for value in history.records) == 0
    assert sum(value.value for value in history.records) == 10, "100 records in one step of ten seconds"


def test_nothing_known_is_nothing_told() -> None:
    history = group_history(a_case())
    assert history.begin is None
    assert history.end is None
    assert not history.departures


def test_who_left_and_why_is_what_logs_of_the_coordinator_say() -> None:
    lines = [
        an_event(
            EventKind.MEMBER_LEFT, NOW - 3 * MINUTE, member="app-1", reason="the consumer is being closed"
        ),
        an_event(EventKind.MEMBER_EXPIRED, NOW - 2 * MINUTE, member="app-2"),
        an_event(
            EventKind.MEMBER_LEFT, NOW - MINUTE, member="app-3", reason="consumer poll timeout has expired."
        ),
        an_event(EventKind.MEMBER_FENCED, NOW, member="app-4"),
    ]
    told = group_history(a_case(events=lines)).departures
    assert [(each.member, each.why) for each in told] == [
        ("app-1", "left"),
        ("app-2", "expired"),
        ("app-3", "poll-interval"),
        ("app-4", "fenced"),
    ]
    assert told[1].text == lines[1].text


def test_a_member_that_only_records_miss_left_for_an_unknown_reason() -> None:
    """Unless its own log says that it paused too long."""
    generations = [
        Generation("billing", 1, (a_member("a"), a_member("b"), a_member("c")), at=NOW - HOUR),
        Generation("billing", 2, (a_member("a"),), at=NOW - MINUTE, source="segment"),
    ]
    pause = an_event(EventKind.POLL_INTERVAL_EXCEEDED, NOW - MINUTE - SECOND, client_id="c", source="c.log:7")
    history = group_history(a_case(generations=generations, events=[pause]))
    assert history.departures == [
        Departure(NOW - MINUTE, "b", "unknown", source="segment"),
        Departure(NOW - MINUTE, "c", "poll-interval", "", pause.text, "c.log:7"),
    ]
    assert history.members == [Value(NOW - HOUR, 3), Value(NOW - MINUTE, 1)]
    assert [(each.generation, each.left) for each in history.rebalances] == [(1, ()), (2, ("b", "c"))]


def test_a_departure_that_the_coordinators_log_tells_is_not_told_again_by_records() -> None:
    left = an_event(EventKind.MEMBER_LEFT, NOW - MINUTE - SECOND, member="b", client_id="b")
    generations = [
        Generation("billing", 1, (a_member("a"), a_member("b")), at=NOW - HOUR),
        Generation("billing", 2, (a_member("a"),), at=NOW - MINUTE),
    ]
    case = a_case(generations=generations, events=[left], states=[a_state("Stable", a_member("a"))])
    assert [each.why for each in group_history(case).departures] == ["left"]
