"""KLP201: generations that follow each other faster than restarts explain."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.rebalance_storm import judge
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, Generation, Member
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_member,
    a_state,
    a_view,
    an_event,
    found,
    missing,
)

_UUID = "00000000-0000-4000-8000-{:012}"


def a_generation(number: int, at: Instant, *members: Member, **fields: Any) -> Generation:
    return Generation(
        "billing", number, members, "consumer", fields.pop("protocol", "range"), at=at, **fields
    )


def _member(name: str, start: int) -> Member:
    """The same client gets another member id with each start."""
    return a_member(
        f"{name}-{_UUID.format(start)}",
        client_id=name,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
    )


def _restarts(
    members: int, restarted: Sequence[int], pause_ms: int, *, end: Instant = NOW, protocol: str = "range"
) -> list[Generation]:
    """One leaves, and comes back: two generations each time."""
    there = {number: _member(f"app-{number}", number) for number in range(members)}
    count = 2 * len(restarted) + 1
    rows = [a_generation(1, end - (count - 1) * pause_ms, *there.values(), protocol=protocol)]
    for start, number in enumerate(restarted, members):
        del there[number]
        rows.append(a_generation(len(rows) + 1, end - (count - 1 - len(rows)) * pause_ms, *there.values()))
        there[number] = _member(f"app-{number}", start)
        rows.append(a_generation(len(rows) + 1, end - (count - 1 - len(rows)) * pause_ms, *there.values()))
    return rows


def _log(count: int, pause_ms: int, busy_ms: int, end: Instant = NOW) -> list[Event]:
    """As the coordinator tells it: app-3 leaves, and comes back."""
    lines = []
    for number in range(count):
        at = end - (count - 1 - number) * pause_ms
        member = f"app-3-{_UUID.format(number // 2)}"
        kind = EventKind.MEMBER_JOINED if number % 2 else EventKind.MEMBER_LEFT
        lines += [
            an_event(kind, at - busy_ms, member=member),
            an_event(
                EventKind.REBALANCE_STARTED, at - busy_ms, generation=number, reason="Adding new member"
            ),
            an_event(EventKind.GENERATION_JOINED, at - 1, generation=number + 1, details={"members": "3"}),
            an_event(EventKind.ASSIGNMENT_RECEIVED, at, generation=number + 1),
        ]
    return lines


def test_a_member_that_comes_and_goes_is_named() -> None:
    """The records of the offsets topic are enough: no log is needed."""
    finding = found(judge(a_case(generations=_restarts(3, [2] * 6, 2 * SECOND), history_from=NOW - HOUR)))
    assert finding.severity is Severity.WARNING
    assert (
        "13 generations, from 1 to 13, within 24 s, one every 2 s. app-2 (6 times) left." in finding.summary
    )
    assert finding.remedies[0].text == "Find out why members come and go: app-2 (6 times)."
    assert finding.members == ("app-0", "app-1", "app-2")
    assert finding.until is None


def test_the_coordinators_log_tells_how_long_nobody_worked() -> None:
    """Half of the time without an assignment, and it goes on: that group does not consume."""
    finding = found(judge(a_case(events=_log(12, 2 * SECOND, 1500))))
    assert finding.severity is Severity.CRITICAL
    assert "app-3 (6 times) left." in finding.summary
    assert "For 77% of that time nobody had an assignment." in finding.summary
    assert any("Adding new member" in each.text for each in finding.evidence)


def test_a_storm_that_is_over_says_when_it_was() -> None:
    """After an hour it is worth knowing, no more."""
    case = a_case(generations=_restarts(3, [2] * 6, SECOND, end=NOW - 10 * MINUTE))
    assert found(judge(case)).until == NOW - 10 * MINUTE
    assert found(judge(case)).severity is Severity.WARNING
    old = a_case(generations=_restarts(3, [2] * 6, SECOND, end=NOW - 2 * HOUR))
    assert found(judge(old)).severity is Severity.NOTICE


def test_one_restless_member_of_many_is_enough() -> None:
    """Fifty members explain a hundred generations; that one of them came back five times, they do not."""
    assert found(judge(a_case(generations=_restarts(50, [7] * 5, 5 * SECOND)))).members[0] == "app-0"


def test_a_rolling_restart_is_none() -> None:
    """Ten members, each stopped and started once: twenty generations within five minutes."""
    assert judge(a_case(generations=_restarts(10, range(10), 15 * SECOND))) is ABSENT


def test_a_rolling_restart_of_clients_with_one_name_is_none() -> None:
    """Clients that share the default name look like one that comes back all the time."""
    rows = _restarts(10, range(10), 15 * SECOND)
    same = [
        a_generation(
            row.generation,
            row.at or 0,
            *(
                a_member(it.member_id.replace(it.client_id, "rdkafka"), client_id="rdkafka")
                for it in row.members
            ),
        )
        for row in rows
    ]
    assert judge(a_case(generations=same)) is ABSENT


def test_a_cooperative_restart_has_twice_as_many_generations() -> None:
    """Each change is followed by a second rebalance, in which partitions move."""
    rows = _restarts(3, [0, 1, 2] * 2, 5 * SECOND, protocol="cooperative-sticky")
    assert judge(a_case(generations=rows)) is ABSENT


def _renamed(rows: Sequence[Generation], prefix: str) -> list[Generation]:
    return [
        replace(
            row,
            members=tuple(
                replace(it, member_id=prefix + it.member_id, client_id=prefix + it.client_id)
                for it in row.members
            ),
        )
        for row in rows
    ]


def test_restarts_of_connect_workers_are_none() -> None:
    """As seen with two workers of 4.3.1: a task leaves the worker that goes, comes up on the other one, and
    moves again when the first is back. One that does not stop is a storm all the same.
    """
    moved = _restarts(2, [0, 0, 1, 1], 20 * SECOND)
    assert judge(a_case(generations=_renamed(moved, "connector-consumer-sink-"))) is ABSENT
    assert found(judge(a_case(generations=moved))).severity is Severity.WARNING
    endless = _renamed(_restarts(2, [0, 1] * 3, 20 * SECOND), "connector-consumer-sink-")
    assert found(judge(a_case(generations=endless))).severity is Severity.WARNING


def test_a_few_starts_of_a_lonely_member_are_none() -> None:
    """A group that was removed begins again at 0: its generations do not grow."""
    rows = [
        a_generation(number, NOW - (6 - at) * 10 * SECOND, *([_member("app", at)] if number % 2 else []))
        for at, number in enumerate([1, 2, 0, 1, 2, 0, 1])
    ]
    assert judge(a_case(generations=rows)) is ABSENT


def test_generations_of_a_month_are_none() -> None:
    """They are no run: what counts is how fast they follow each other."""
    assert judge(a_case(generations=_restarts(3, [2] * 20, 12 * HOUR))) is ABSENT


def test_copies_of_a_record_count_once() -> None:
    """Segments of all replicas hold the same generations."""
    rows = sorted(3 * _restarts(3, [0, 1], 5 * SECOND), key=lambda row: row.at or 0)
    assert judge(a_case(generations=rows)) is ABSENT


def test_looks_alone_show_a_restless_group() -> None:
    """Without history and logs, the same rebalance is not always another one."""
    states = [
        a_state("PreparingRebalance", a_member("app-1"), a_member(f"app-2-{at}"), at=NOW - (4 - at) * SECOND)
        for at in range(4)
    ]
    assert "rebalancing in 4 of 4 looks" in found(judge(a_case(states=states))).summary
    stuck = [a_state("PreparingRebalance", a_member("app-1"), at=NOW - at * SECOND) for at in (3, 2, 1, 0)]
    assert missing(judge(a_case(states=stuck)))


def test_without_history_and_logs_nobody_can_say() -> None:
    """A group that is stable now may have been restless a minute ago."""
    assert "history of __consumer_offsets" in missing(judge(a_case(states=[a_state()])))[0]
    assert judge(a_case(states=[a_state()], history_from=NOW - HOUR)) is ABSENT


def test_a_poll_limit_that_is_exceeded_again_and_again_is_named_as_the_cause() -> None:
    """The rebalances follow from it (KLP203): whoever reads of the storm must not look for another cause."""
    rows = _restarts(3, [1] * 6, 5 * SECOND)
    late = [
        an_event(EventKind.POLL_INTERVAL_EXCEEDED, row.at, client_id="app-1")
        for row in rows
        if len(row.members) == 2
    ]
    finding = found(judge(a_case(generations=rows, events=late)))
    assert (
        "The cause: app-1 did not call poll() in time and left the group each time (KLP203)."
        in finding.summary
    )
    assert len(finding.remedies) == 1
    assert "max.poll.records" in finding.remedies[0].text
    another = [replace(event, client_id="app-2") for event in late[:1]]
    left = [an_event(EventKind.MEMBER_LEFT, row.at, client_id="app-1") for row in rows[1:]]
    assert "KLP203" not in found(judge(a_case(generations=rows, events=[*another, *left]))).summary


def test_probing_rebalances_of_streams_do_not_count() -> None:
    """By them Kafka Streams finds out whether a warm-up has ended."""
    reason = "rebalance enforced with reason: Scheduled probing rebalance"
    lines: list[Event] = []
    for number in range(30):
        at = NOW - (30 - number) * 10 * SECOND
        lines.append(an_event(EventKind.REBALANCE_STARTED, at, reason=reason))
        lines.append(an_event(EventKind.GENERATION_JOINED, at + SECOND, generation=number))
    assert judge(a_case(events=lines, history_from=NOW - HOUR)) is ABSENT
    others = [replace(line, reason="member joined") for line in lines]
    assert found(judge(a_case(events=others)))


def _rejoined(count: int, brokers: int) -> Case:
    """Two members, and so many generations of the same two, 10 s apart."""
    members = [_member(f"app-{number}", number) for number in range(2)]
    rows = [
        a_generation(number, NOW - (count - number) * 10 * SECOND, *members) for number in range(1, count + 1)
    ]
    nodes = tuple(range(1, brokers + 1))
    cluster = a_cluster(a_view(0, 1, nodes), offsets_partitions=1, brokers=nodes)
    return a_case(cluster=cluster, generations=rows)


def test_a_rolling_restart_of_brokers_is_no_storm() -> None:
    """Near miss, as seen on 4.3.1: consumers with a rack rejoin when a broker goes and when it is back, and
    when their coordinator moves. Their members stay the same. What brokers do not explain is a storm.
    """
    assert judge(_rejoined(13, brokers=3)) is ABSENT
    assert found(judge(_rejoined(21, brokers=3))).severity is Severity.WARNING
    assert found(judge(_rejoined(13, brokers=1))).severity is Severity.WARNING
