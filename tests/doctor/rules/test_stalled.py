"""KLP309: members are there, records wait, and nothing moves."""

from dataclasses import replace
from typing import Any

from kelpie.cluster import Outage
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Severity
from kelpie.doctor.rules import rules
from kelpie.doctor.rules.stalled import judge
from kelpie.observations import Commit, Generation, LogEnds
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
    a_view,
    an_end,
    an_offsets_topic,
    commits,
    found,
    looks,
    missing,
)

READS = a_state("Stable", a_member("app-1", 0, host="/10.0.0.7", client_id="app"))
SINCE = NOW - 5 * MINUTE


def _history(partition: int = 0, stuck: int | None = 700) -> list[Commit]:
    """A commit every 5 s for an hour; from SINCE on at the same offset."""
    moments = []
    for number, at in enumerate(range(NOW - HOUR, NOW + 1, 5 * SECOND)):
        moments.append((at, stuck if stuck is not None and at >= SINCE else 10 * number // 10))
    return commits(*moments, partition=partition)


def _case(history: list[Commit], *ends: LogEnds, **fields: Any) -> Case:
    rows = {row.partition: row for row in history}.values()
    given = looks(*(a_committed(row.offset, partition=row.partition) for row in rows))
    own = {"states": [READS], "history_from": NOW - HOUR, **given, **fields}
    return a_case(cluster=a_cluster(ends=ends), commits=history, **own)


def test_commits_that_go_on_at_the_same_offset_show_a_stall() -> None:
    """Java's consumer commits again and again what has not changed: the group looks alive."""
    finding = found(judge(_case(_history(), an_end(900, at=NOW - 4 * MINUTE), an_end(1200))))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing has not moved in orders-0 for 4 min at least, though it commits offset 700 again and "
        "again; 500 records wait."
    )
    assert finding.members == ("app-1",)
    assert finding.remedies[0].text == "Look at member app-1 on 10.0.0.7, client app: its log, a thread dump."
    assert len(finding.remedies) == 1


def test_a_record_is_shown_after_minutes_and_never_stepped_over_by_a_command() -> None:
    """The record that fails may be any of its batch: whoever steps over the first may lose a good one."""
    since = an_end(900, at=NOW - 6 * MINUTE)
    stuck = commits(*((at, 700) for at in range(NOW - HOUR, NOW + 1, 5 * SECOND)))
    finding = found(judge(_case(stuck, since, an_end(1200))))
    commands = [remedy.command for remedy in finding.remedies if remedy.command]
    assert [command.split() for command in commands] == [
        ["kelpie", "peek", "-b", "kafka-1:9092", "orders", "0", "700"]
    ]


def _forty_members(last: int) -> Case:
    """Each commits its own partition every 5 s, one after the other; the last commits were so long ago."""
    history = [
        row
        for partition in range(40)
        for row in commits(
            *((at, 10 + at % 7) for at in range(last - HOUR + 125 * partition, last, 5 * SECOND)),
            partition=partition,
        )
    ]
    ends = [an_end(900, partition=partition, last_written=last) for partition in range(40)]
    members = [a_member(f"app-{partition}", partition) for partition in range(40)]
    return _case(history, *ends, states=[a_state("Stable", *members)])


def test_many_members_together_do_not_make_the_doctor_impatient() -> None:
    """Forty members make eight commits a second; after 4 s without any, each of them is in its rhythm."""
    assert judge(_forty_members(NOW - 4 * SECOND)) is ABSENT
    assert not isinstance(rules()["KLP310"].judge(_forty_members(NOW - 4 * SECOND)), Finding)  # type: ignore[misc]
    assert found(rules()["KLP310"].judge(_forty_members(NOW - 70 * SECOND))).severity is Severity.CRITICAL  # type: ignore[misc]


def test_while_a_broker_of_the_partition_is_away_more_patience_is_due() -> None:
    """Near miss: a broker has died, and clients look for the new leader. Healthy groups stand still then."""
    view = a_view(0, 1, topic="orders", replicas=(1, 2), in_sync=(1,))
    ends = [an_end(900, at=NOW - 40 * SECOND), an_end(1200)]
    case = _case(_history(), *ends)
    dead = replace(case.cluster.brokers[2], alive=False)
    brokers = {**case.cluster.brokers, 2: dead}
    cluster = replace(case.cluster, brokers=brokers, views={**case.cluster.views, view.name: (view,)})
    assert not isinstance(judge(replace(case, cluster=cluster)), Finding)
    assert isinstance(judge(case), Finding)


def _after_a_restart(stood_ms: int, back_ms: int, **fields: Any) -> Case:
    """A broker of the partition came back so long ago; the group has been standing for so long."""
    view = a_view(0, 1, topic="orders", replicas=(1, 2), leader_epoch=8)
    history = commits(*((at, at) for at in range(NOW - HOUR, NOW - stood_ms + 1, 5 * SECOND)), **fields)
    ends = [an_end(NOW, at=NOW - stood_ms), an_end(NOW + 400)]
    case = _case(history, *ends)
    away = Outage(2, None, NOW - back_ms, seen=NOW - back_ms - 20 * SECOND)
    views = {**case.cluster.views, view.name: (view,)}
    return replace(case, cluster=replace(case.cluster, views=views, outages={2: (away,)}))


def _is_found(case: Case) -> bool:
    """As KLP309, or as KLP310 if nothing at all is committed."""
    judgements = (judge(case), rules()["KLP310"].judge(case))  # type: ignore[misc]
    return any(isinstance(judgement, Finding) for judgement in judgements)


def test_after_a_broker_is_back_more_patience_is_due_for_a_minute() -> None:
    """Near miss: in a rolling restart, a producer waited 25 s for the coordinator of its transactions. A real
    stall is found a minute after it began, or a minute after the broker's return.
    """
    assert not _is_found(_after_a_restart(25 * SECOND, 5 * SECOND))
    assert _is_found(_after_a_restart(25 * SECOND, MINUTE))
    assert _is_found(_after_a_restart(MINUTE, 5 * SECOND))


def test_while_a_static_member_restarts_nobody_takes_over() -> None:
    """Near miss: a deployment takes less than the session of a static member. Then another one takes over."""
    for stood_ms, is_found in ((25 * SECOND, False), (45 * SECOND, True)):
        member = a_member("app-1", 0, instance_id="app-1", session_timeout_ms=45 * SECOND)
        case = _after_a_restart(stood_ms, HOUR)
        assert _is_found(replace(case, states=(a_state("Stable", member),))) is is_found


def test_a_restart_that_nobody_saw_shows_by_the_epoch_of_the_leader() -> None:
    """The group read its last records from an earlier leader."""
    assert not _is_found(_after_a_restart(25 * SECOND, HOUR, leader_epoch=7))
    assert _is_found(_after_a_restart(25 * SECOND, HOUR, leader_epoch=8))
    assert _is_found(_after_a_restart(MINUTE, HOUR, leader_epoch=7))


def test_a_transaction_may_wait_for_any_broker() -> None:
    """Its coordinator may be on a broker with which the group has nothing to do."""
    case = _after_a_restart(25 * SECOND, 5 * SECOND, transactional=True)
    of_another = {4: tuple(replace(outage, node_id=4) for outage in case.cluster.outages[2])}
    case = replace(case, cluster=replace(case.cluster, outages=of_another))
    assert not _is_found(case)
    without = {
        name: tuple(row._replace(transactional=False) for row in rows) for name, rows in case.commits.items()
    }
    assert _is_found(replace(case, commits=without))


def test_one_survey_is_enough_where_producers_are_silent() -> None:
    """The newest record is minutes old, and still unread."""
    finding = found(judge(_case(_history(), an_end(1200, last_written=NOW - 2 * MINUTE))))
    assert finding.since == NOW - 2 * MINUTE


def test_one_partition_of_many_may_stall() -> None:
    """The others go on and commit; librdkafka commits nothing where nothing moves."""
    silent = [row for row in _history(1) if (row.at or 0) <= SINCE]
    case = _case(
        [*_history(0, None), *silent],
        an_end(720),
        an_end(900, partition=1, at=NOW - 2 * MINUTE),
        an_end(950, partition=1),
        states=[a_state("Stable", a_member("app-1", 0, 1))],
    )
    assert found(judge(case)).partitions == ("orders-1",)


def test_a_lag_that_has_just_come_up_is_no_stall() -> None:
    """Near miss: the consumer had read all, and 500 records have come in this second."""
    assert (
        judge(_case(_history(), an_end(700, at=NOW - 3 * SECOND), an_end(1200, last_written=NOW))) is ABSENT
    )


def test_a_group_that_moves_is_not_stalled_however_large_its_lag() -> None:
    """Slow is not stuck."""
    assert judge(_case(_history(stuck=None), an_end(10**6, at=SINCE), an_end(10**6))) is ABSENT


def test_a_lag_of_one_record_is_no_stall() -> None:
    """The marker at the end of a transaction is never read."""
    assert judge(_case(_history(), an_end(701, at=SINCE), an_end(701))) is ABSENT


def test_a_reader_held_back_by_a_transaction_is_not_stalled() -> None:
    """KLP306 says what holds it."""
    held = an_end(1200, stable=700, last_written=NOW - 2 * MINUTE)
    assert judge(_case(_history(), held)) is ABSENT


def test_silent_members_are_the_other_rules_matter() -> None:
    """Nothing at all is committed any more: KLP310."""
    silent = [row for row in _history() if (row.at or 0) <= SINCE]
    assert judge(_case(silent, an_end(1200, last_written=NOW - 2 * MINUTE))) is ABSENT


def test_with_nobody_there_nothing_stalls() -> None:
    """KLP310 again."""
    assert judge(_case(_history(), an_end(1200), states=[a_state("Empty")])) is ABSENT


def test_two_surveys_show_it_without_history() -> None:
    """Where __consumer_offsets may not be read: two minutes, since Kafka Connect commits once a minute."""

    def case(stood_ms: int) -> Case:
        return a_case(
            cluster=a_cluster(ends=[an_end(900, at=NOW - stood_ms), an_end(1200)]),
            **looks(a_committed(700, at=NOW - stood_ms), a_committed(700)),
            states=[READS],
        )

    assert "though members are there" in found(judge(case(2 * MINUTE))).summary
    assert missing(judge(case(2 * MINUTE - 1)))[0].startswith("a second look")


def test_commits_at_rebalances_are_no_rhythm() -> None:
    """Seen on real Kafka: two commits within a second, at the rebalances of a start; then the member
    committed every 15 s, as it was told to, and was called stalled.
    """
    began = NOW - 20 * SECOND
    pair = a_state("Stable", a_member("app-1", 0), a_member("app-2", 1))
    generations = [
        Generation("billing", number, pair.members, "consumer", "range", at=began + number * 300)
        for number in range(4)
    ]
    start = commits((began + 200, 700), (began + 500, 700), (began + 800, 700))
    other = commits(*((at, at - began) for at in range(began, NOW, 5 * SECOND)), partition=1)
    ends = [
        an_end(700, at=began),
        an_end(720, at=began + 2 * SECOND),
        an_end(1200),
        an_end(15_001, partition=1),
    ]
    young = judge(_case([*start, *other], *ends, states=[pair], generations=generations))
    assert not isinstance(young, Finding)
    before = commits(*((began - ms, 700) for ms in range(60_000, 0, -5000)))
    old = judge(_case([*before, *start, *other], *ends, states=[pair], generations=generations))
    assert found(old).partitions == ("orders-0",), "of one that committed every 5 s it is so"


def test_one_survey_says_too_little() -> None:
    """A lag alone proves nothing."""
    case = a_case(cluster=a_cluster(ends=[an_end(1200)]), **looks(a_committed(700)), states=[READS])
    assert missing(judge(case))[0].startswith("a second look")
    assert missing(judge(_case(_history()))) == ("where the log of orders-0 ends",)
    assert missing(judge(a_case())) == ("who is in the group",)


def test_a_group_without_coordinator_or_in_a_rebalance_is_not_judged() -> None:
    """Others say why it does not move."""
    ends = [an_end(1200, last_written=NOW - 2 * MINUTE)]
    moving = a_state("PreparingRebalance", a_member("app-1", 0))
    assert "rebalance" in missing(judge(_case(_history(), *ends, states=[moving])))[0]
    rows = [a_view(row.partition, -1) for row in an_offsets_topic()]
    cut_off = a_case(cluster=a_cluster(*rows, ends=ends), commits=_history(), states=[READS])
    assert "KLP101" in missing(judge(cut_off))[0]


def _works_off(seconds: int, *holders: Any) -> Case:
    """Orders-0 moves, and is behind; in orders-1 nothing has moved for so long."""
    waits = [row for row in _history(1, None) if (row.at or 0) <= NOW - seconds * SECOND]
    old = NOW - HOUR
    return _case(
        [*_history(0, None), *waits],
        an_end(9000, last_written=old),
        an_end(9000, partition=1, last_written=old),
        states=[a_state("Stable", *holders)],
    )


def test_a_member_that_works_off_a_backlog_comes_to_one_partition_after_the_other() -> None:
    """Near miss: clients hand out what they fetched chunk by chunk, each of one partition."""
    told = missing(judge(_works_off(60, a_member("app-1", 0, 1))))
    assert told == ("whether its turn comes to orders-1: it is busy with other partitions",)


def test_a_backlog_elsewhere_explains_a_few_minutes_and_no_more() -> None:
    """By then Kafka itself would have taken a consumer for stuck."""
    assert found(judge(_works_off(310, a_member("app-1", 0, 1)))).partitions == ("orders-1",)


def test_records_that_have_just_come_elsewhere_are_no_backlog() -> None:
    """Seen on 4.3.1: a member that failed at one record was taken for busy, for some records of a second."""
    waits = [row for row in _history(1, None) if (row.at or 0) <= NOW - 60 * SECOND]
    case = _case(
        [*_history(0, None), *waits],
        an_end(719, at=NOW - 10 * SECOND),
        an_end(725),
        an_end(9000, partition=1, last_written=NOW - HOUR),
        states=[a_state("Stable", a_member("app-1", 0, 1))],
    )
    assert found(judge(case)).partitions == ("orders-1",)


def test_what_another_member_works_off_explains_nothing() -> None:
    """The one who holds the partition has nothing else to do."""
    both = _works_off(60, a_member("app-1", 0), a_member("app-2", 1))
    assert found(judge(both)).members == ("app-2",)


def test_within_the_first_minute_a_stall_is_a_warning() -> None:
    """A large batch looks the same."""
    ends = [an_end(900, at=NOW - 40 * SECOND), an_end(1200)]
    assert found(judge(_case(_history(), *ends))).severity is Severity.WARNING
