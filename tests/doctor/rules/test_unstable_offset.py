"""KLP307: a transaction keeps the group's committed offset in the air."""

from dataclasses import replace
from typing import Any

import pytest

from kelpie.cluster import Outage
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build
from kelpie.doctor.finding import ABSENT, Finding, Severity
from kelpie.doctor.position_words import SECOND_LOOK
from kelpie.doctor.rules.unstable_offset import judge
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import (
    OFFSETS_TOPIC,
    ClockReading,
    Committed,
    EventKind,
    Observations,
    OpenTransaction,
    PendingCommit,
)
from kelpie.observations.positions import NO_OFFSET
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_broker,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    an_answer,
    an_offsets_topic,
    commits,
    events,
    found,
    looks,
    missing,
)

OWN = TopicPartition(OFFSETS_TOPIC, partition_for("billing", 50))
UNSTABLE = a_committed(NO_OFFSET, error=88)


BEFORE = a_committed(NO_OFFSET, error=88, at=NOW - 2 * MINUTE)
PENDING = PendingCommit("billing", "orders", 0, 120, 4001, 7, NOW - 20 * MINUTE, "broker 1")


def _case(*rows: Committed, transaction: OpenTransaction | None = None, **fields: Any) -> Case:
    of = {} if transaction is None else {OWN: (transaction, *fields.pop("others", ()))}
    return a_case(cluster=a_cluster(transactions=of), **looks(*rows), **fields)


def _transaction(**fields: Any) -> OpenTransaction:
    given = {"state": "Ongoing", "transactional_id": "app-tx", "timeout_ms": MINUTE, "at": NOW, **fields}
    return OpenTransaction(*OWN, 4001, 7, 90, **given)


def test_an_offset_that_two_looks_saw_unstable_stays_so() -> None:
    """Consumers that start wait for it without a line in their logs."""
    rows = (a_committed(NO_OFFSET, error=88, at=NOW - 8 * SECOND), UNSTABLE)
    finding = found(judge(_case(*rows, pending=(PENDING,))))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing: a consumer that starts now reads nothing: the committed offsets of orders-0 have "
        "been unstable for 8 s. A transaction that commits them is neither committed nor aborted."
    )
    assert finding.since == NOW - 8 * SECOND
    assert "error 88 UNSTABLE_OFFSET_COMMIT" in finding.evidence[0].text


def test_looks_alone_do_not_tell_one_transaction_from_the_next() -> None:
    """Near miss, as seen on 3.9.2 with a quota, which kept the doctor from reading the group's records: three
    looks within 15 s met three transactions. A minute of them is no accident.
    """
    for ago_ms, is_found in ((15 * SECOND, False), (MINUTE, True)):
        rows = [a_committed(NO_OFFSET, error=88, at=NOW - ago) for ago in (ago_ms, SECOND // 2)]
        assert isinstance(judge(_case(*rows, UNSTABLE)), Finding) is is_found


def test_a_clock_that_may_be_fast_makes_no_transaction_old() -> None:
    """Near miss, as seen on 3.9.2, where no broker tells the time: the clock here was 90 s ahead, and the
    transaction of half a second ago seemed to be that old.
    """
    case = _case(UNSTABLE, transaction=_transaction(last_written=NOW - 91 * SECOND), pending=(PENDING,))
    found(judge(case))
    assert judge(replace(case, ages_uncertain_ms=92 * SECOND)) is ABSENT


def test_a_slow_survey_makes_no_transaction_older() -> None:
    """Near miss, as seen on 4.3.1 with a quota: the coordinator answered 0.6 s after the look before, and the
    rest of the survey took 6 s. A busy group has some transaction open at every look.
    """
    first, last = (a_committed(NO_OFFSET, error=88, at=NOW - ago) for ago in (6600, 6000))
    assert missing(judge(_case(first, last))) == (SECOND_LOOK,)
    assert (
        judge(_case(first, last, transaction=_transaction(last_written=NOW - 6100, at=NOW - 5900))) is ABSENT
    )


def test_while_brokers_fail_over_a_transaction_may_wait_for_its_coordinator() -> None:
    """Near miss, as seen on 2.8.2 in a rolling restart. What has not ended after a minute is found."""
    away = {2: (Outage(2, None, NOW - SECOND, seen=NOW - 20 * SECOND),)}
    for ago_ms, is_found in ((10 * SECOND, False), (MINUTE, True)):
        case = _case(a_committed(NO_OFFSET, error=88, at=NOW - ago_ms), UNSTABLE, pending=(PENDING,))
        case = replace(case, cluster=replace(case.cluster, outages=away))
        assert isinstance(judge(case), Finding) is is_found


def test_a_plain_commit_that_waits_for_replicas_is_no_transaction() -> None:
    """Coordinators up to 3.x answer error 88 for it, too (seen on 2.8.2 after a broker was killed)."""
    looks_at = (a_committed(NO_OFFSET, error=88, at=NOW - 2 * MINUTE), UNSTABLE)
    history = commits((NOW - 10 * MINUTE, 5), (NOW - 5 * MINUTE, 6))
    assert "in no transaction" in missing(judge(_case(*looks_at, commits=history)))[0]
    in_one = [row._replace(transactional=True) for row in history]
    assert found(judge(_case(*looks_at, commits=in_one)))


@pytest.mark.parametrize("ahead_ms", [90 * SECOND, -90 * SECOND])
def test_the_age_of_a_transaction_is_told_by_one_clock(ahead_ms: int) -> None:
    """Near miss: the broker's clock is not ours, and the transaction's last record has the broker's time."""
    seen = Observations(
        brokers=[a_broker(node) for node in (1, 2, 3)],
        partitions=an_offsets_topic(),
        clocks=[ClockReading(100, NOW + ahead_ms, NOW, NOW)],
        committed=[UNSTABLE],
        answers=[an_answer(asked="OffsetFetch")],
        transactions=[_transaction(last_written=NOW + ahead_ms - SECOND)],
    )
    (case,) = build(seen, now=NOW)[1]
    assert judge(case) is ABSENT
    (old,) = build(replace(seen, transactions=[_transaction(last_written=NOW + ahead_ms - HOUR)]), now=NOW)[1]
    assert "unstable for 60 min" in found(judge(old)).summary


def test_an_open_transaction_that_takes_unusually_long_is_found_at_once() -> None:
    """The group's transactions commit every 100 ms; this one is open for 3 s."""
    history = commits(*((NOW - 5 * SECOND + at, at) for at in range(0, 2000, 100)), transactional=True)
    case = _case(
        UNSTABLE,
        transaction=_transaction(last_written=NOW - 3 * SECOND),
        commits=history,
        states=[a_state("Stable", a_member("app-1", 0))],
    )
    finding = found(judge(case))
    assert finding.severity is Severity.WARNING
    assert "'app-tx'" in finding.remedies[0].text
    assert finding.cause == str(OWN)


def test_a_transaction_that_its_coordinator_does_not_know_is_to_be_aborted() -> None:
    """Nobody will end it."""
    lost = _transaction(state="", transactional_id="", last_written=NOW - 20 * MINUTE)
    finding = found(judge(_case(BEFORE, UNSTABLE, transaction=lost, pending=(PENDING,))))
    assert finding.severity is Severity.CRITICAL
    assert (
        f"--topic {OFFSETS_TOPIC} --partition {OWN.partition} --start-offset 90"
        in finding.remedies[0].command
    )


def test_one_look_or_a_guess_is_no_reason_to_abort() -> None:
    """A transaction of another application, aborted, loses that application's records."""
    lost = _transaction(state="", transactional_id="", last_written=NOW - 20 * MINUTE)
    once = found(judge(_case(UNSTABLE, transaction=lost, pending=(PENDING,))))
    assert once.severity is Severity.WARNING
    guessed = found(judge(_case(BEFORE, UNSTABLE, transaction=lost)))
    assert "likely, not certain" in guessed.why
    assert not any(" abort " in it.command for it in (*once.remedies, *guessed.remedies))


def test_the_transaction_of_another_group_is_not_blamed() -> None:
    """Many groups share a partition of the offsets topic; the oldest transaction there is anybody's."""
    stranger = _transaction(state="", transactional_id="stranger", last_written=NOW - 20 * MINUTE)
    own = _transaction(last_written=NOW - 3 * MINUTE)._replace(producer_id=5005, started_at_offset=400)
    pending = PENDING._replace(producer_id=5005)
    both: dict[str, Any] = {"transaction": stranger, "others": (own,)}
    told = found(judge(_case(BEFORE, UNSTABLE, pending=(pending,), **both)))
    assert "'app-tx'" in told.remedies[0].text
    assert "stranger" not in str((told.evidence, told.remedies))
    untold = found(judge(_case(BEFORE, UNSTABLE, **both)))
    assert f"2 transactions are open in {OWN}; which one is this group's cannot be told" in untold.why
    assert not any("producer" in it.text for it in untold.evidence)


def test_two_looks_at_two_transactions_are_no_transaction_that_stays_open() -> None:
    """Near miss: the group commits every second, and each look met a transaction that ended soon after."""
    rows = [a_committed(NO_OFFSET, error=88, at=NOW - 10 * SECOND), UNSTABLE]
    history = commits(*((NOW - at * SECOND, 100 - at) for at in range(20, 0, -1)), transactional=True)
    assert "a second look" in missing(judge(_case(*rows, commits=history)))[0]
    later = PENDING._replace(at=NOW - 200)
    now_open = _transaction(last_written=NOW - 200)
    assert judge(_case(*rows, commits=history, pending=(later,), transaction=now_open)) is ABSENT
    slow = commits((NOW - 30 * SECOND, 90), (NOW - 12 * SECOND, 100), transactional=True)
    assert "a second look" in missing(judge(_case(*rows, commits=slow)))[0]
    soon = [a_committed(NO_OFFSET, error=88, at=NOW - SECOND // 2), UNSTABLE]
    assert "a second look" in missing(judge(_case(*soon)))[0]


def test_a_transaction_that_stays_open_beside_those_that_end_is_found() -> None:
    """A second producer of the group commits every second; that does not end what the first left open."""
    rows = [a_committed(NO_OFFSET, error=88, at=NOW - 10 * SECOND), UNSTABLE]
    history = commits(*((NOW - at * SECOND, 100 - at) for at in range(20, 0, -1)), transactional=True)
    left = _transaction(last_written=NOW - 30 * SECOND)
    assert found(judge(_case(*rows, commits=history, transaction=left))).since == NOW - 30 * SECOND
    assert found(judge(_case(*rows, commits=history, pending=(PENDING,)))).since == NOW - 10 * SECOND


def test_a_transaction_that_is_about_to_commit_is_well() -> None:
    """Near miss: every transaction is pending for a moment."""
    case = _case(UNSTABLE, transaction=_transaction(last_written=NOW - 200))
    assert judge(case) is ABSENT


def test_an_offset_that_was_unstable_is_well_now() -> None:
    """Near miss: the transaction has ended."""
    assert judge(_case(a_committed(NO_OFFSET, error=88, at=NOW - 8 * SECOND), a_committed(7))) is ABSENT


def test_one_look_without_the_transaction_says_too_little() -> None:
    """It may be over in a millisecond."""
    assert "a second look" in missing(judge(_case(UNSTABLE)))[0]
    assert missing(judge(a_case())) == ("its committed offsets",)
    assert judge(a_case(answers=[an_answer(asked="OffsetFetch")])) is ABSENT


def test_a_consumers_log_tells_it_too() -> None:
    """At debug level Java's consumer says each time that it asks again."""
    lines = events(EventKind.UNSTABLE_OFFSET, NOW - MINUTE, NOW - 30 * SECOND, NOW)
    assert found(judge(a_case(events=lines))).since == NOW - MINUTE


def test_the_records_of_the_offsets_topic_name_the_producer_where_no_broker_can_be_asked() -> None:
    """Disks and logs of an incident: no broker describes the transaction, but its records are there."""
    lines = events(EventKind.UNSTABLE_OFFSET, NOW - MINUTE, NOW)
    finding = found(judge(a_case(events=lines, pending=(PENDING,))))
    assert f"Producer {PENDING.producer_id} (epoch {PENDING.producer_epoch}) commits them" in finding.why
    assert any(f"by producer {PENDING.producer_id}" in each.text for each in finding.evidence)
    assert not any(remedy.command for remedy in finding.remedies)
