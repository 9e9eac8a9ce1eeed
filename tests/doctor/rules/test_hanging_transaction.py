"""KLP306: a transaction that nobody will end hides everything behind it."""

from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.hanging_transaction import judge
from kelpie.model.names import TopicPartition
from kelpie.observations import LogEnds, OpenTransaction
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    an_end,
    found,
    looks,
    missing,
)

ORDERS = TopicPartition("orders", 0)
READS = a_state("Stable", a_member("app-1", 0))
HELD = an_end(500, stable=300)


def _transaction(**fields: Any) -> OpenTransaction:
    given = {"last_written": NOW - 20 * MINUTE, "at": NOW, "source": "broker 1", **fields}
    return OpenTransaction("orders", 0, 4001, 7, 300, **given)


def _case(*ends: LogEnds, transactions: list[OpenTransaction] | None = None, offset: int = 300) -> Case:
    of = {} if transactions is None else {ORDERS: tuple(transactions)}
    cluster = a_cluster(ends=ends or [HELD], transactions=of)
    return a_case(cluster=cluster, states=[READS], **looks(a_committed(offset)))


BEFORE = an_end(310, stable=300, at=NOW - 2 * MINUTE)
"""An earlier survey saw the last stable offset at the same place."""


def test_a_transaction_that_its_coordinator_does_not_know_hangs() -> None:
    """To readers of committed records the topic ends there, for ever and without an error."""
    finding = found(judge(_case(BEFORE, HELD, transactions=[_transaction(coordinator_epoch=3)])))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing, if it reads committed records only, waits in orders-0: a transaction is open there. "
        "The last stable offset of orders-0 is 300, the log ends at 500, and its producer has been silent "
        "for 20 min."
    )
    assert finding.cause == "orders-0"
    assert [it.command for it in finding.remedies] == [
        "kafka-transactions.sh --bootstrap-server kafka-1:9092 abort --topic orders --partition 0 "
        "--start-offset 300",
        "kafka-transactions.sh --bootstrap-server kafka-1:9092 abort --topic orders --partition 0 "
        "--producer-id 4001 --producer-epoch 7 --coordinator-epoch 3",
    ]
    assert "no coordinator knows it" in finding.evidence[-1].text
    assert finding.check.endswith(" describe-producers --topic orders --partition 0")


def _aborts(case: Case) -> list[str]:
    return [it.command for it in found(judge(case)).remedies if " abort " in it.command]


def test_one_survey_never_advises_to_abort() -> None:
    """What is aborted wrongly is lost; a second look costs a minute."""
    finding = found(judge(_case(transactions=[_transaction()])))
    assert finding.severity is Severity.WARNING
    assert "Look again once it is older than 15 min" in finding.remedies[0].text
    assert not _aborts(_case(transactions=[_transaction()]))
    moment_ago = an_end(310, stable=300, at=NOW - 20 * SECOND)
    assert not _aborts(_case(moment_ago, HELD, transactions=[_transaction()]))


def test_a_young_transaction_that_no_coordinator_lists_may_be_moving() -> None:
    """Near miss, as seen on 3.9.2 in a rolling restart. A minute later, or at a second look, it hangs."""
    young = _transaction(last_written=NOW - 3 * SECOND)
    assert judge(_case(transactions=[young])) is ABSENT
    old = _transaction(last_written=NOW - MINUTE)
    assert found(judge(_case(transactions=[old]))).severity is Severity.WARNING
    assert found(judge(_case(BEFORE, HELD, transactions=[young]))).severity is Severity.CRITICAL


def test_a_transaction_that_may_still_last_is_not_to_be_aborted() -> None:
    """Near miss: two surveys saw it, and transaction.max.timeout.ms has not passed."""
    young = _transaction(last_written=NOW - 5 * MINUTE)
    assert found(judge(_case(BEFORE, HELD, transactions=[young]))).severity is Severity.CRITICAL
    assert not _aborts(_case(BEFORE, HELD, transactions=[young]))
    assert _aborts(_case(BEFORE, HELD, transactions=[_transaction()]))


def test_a_transaction_that_its_coordinator_is_ending_is_not_to_be_aborted() -> None:
    """It has decided already; a marker of the other kind would contradict it."""
    ending = _transaction(state="PrepareCommit", timeout_ms=60_000, transactional_id="app-tx")
    finding = found(judge(_case(BEFORE, HELD, transactions=[ending])))
    assert "Do not abort it" in finding.remedies[-1].text
    assert not _aborts(_case(BEFORE, HELD, transactions=[ending]))


def test_whether_a_hidden_transaction_hangs_cannot_be_told() -> None:
    """ListTransactions leaves out what the caller may not describe, and what has no coordinator."""
    hidden = _transaction(state="?")
    assert missing(judge(_case(BEFORE, HELD, transactions=[hidden])))[0] == (
        "whether a coordinator knows the transaction that is open in orders-0, and will end it"
    )
    long_ago = an_end(310, stable=300, at=NOW - 30 * MINUTE)
    finding = found(judge(_case(long_ago, HELD, transactions=[hidden])))
    assert finding.severity is Severity.WARNING
    assert "Do not abort it yet" in finding.remedies[0].text
    assert not _aborts(_case(long_ago, HELD, transactions=[hidden]))


def test_a_transaction_that_is_over_for_its_coordinator_hangs() -> None:
    """A record that came late, after the marker: what KIP-890 is about."""
    state = _transaction(state="CompleteAbort", transactional_id="app-tx")
    assert found(judge(_case(transactions=[state]))).severity is Severity.WARNING
    assert found(judge(_case(BEFORE, HELD, transactions=[state]))).severity is Severity.CRITICAL


def test_a_transaction_far_beyond_its_timeout_hangs() -> None:
    """Its coordinator should have aborted it."""
    late = _transaction(state="Ongoing", transactional_id="app-tx", timeout_ms=60_000)
    finding = found(judge(_case(BEFORE, HELD, transactions=[late])))
    assert finding.severity is Severity.CRITICAL
    assert "'app-tx'" in finding.remedies[0].text


def test_a_transaction_within_its_timeout_is_well() -> None:
    """Near miss: such are open all the time where producers use transactions."""
    young = _transaction(state="Ongoing", timeout_ms=60_000, last_written=NOW - 5 * SECOND)
    assert judge(_case(transactions=[young])) is ABSENT


def test_a_transaction_that_two_looks_saw_is_a_notice_until_its_timeout() -> None:
    """It holds readers back for now, and somebody will end it."""
    young = _transaction(state="Ongoing", timeout_ms=60_000, last_written=NOW - 5 * SECOND)
    before = an_end(400, stable=300, at=NOW - 5 * SECOND)
    assert found(judge(_case(before, HELD, transactions=[young]))).severity is Severity.NOTICE


def test_a_reader_of_uncommitted_records_is_not_concerned() -> None:
    """Its offset behind the last stable one shows it."""
    assert judge(_case(transactions=[_transaction()], offset=400)) is ABSENT


def test_a_transaction_that_has_ended_since_is_well() -> None:
    """DescribeProducers was asked after the ends, and knows of none."""
    assert judge(_case(transactions=[])) is ABSENT


def test_where_brokers_cannot_tell_of_producers_time_does() -> None:
    """Before 2.8: a last stable offset that stood still longer than any transaction may last."""
    since = an_end(310, stable=300, at=NOW - 30 * MINUTE)
    assert found(judge(_case(since, HELD))).severity is Severity.CRITICAL


def test_one_look_without_producers_says_too_little() -> None:
    """Transactions are open all the time."""
    assert missing(judge(_case()))[0] == "which transaction is open in orders-0, and since when"
    assert missing(judge(_case(an_end(500, stable=-1)))) == ("the last stable offset of orders-0",)


def test_a_producer_that_is_silent_for_a_minute_is_told_of_at_the_first_look() -> None:
    """Its coordinator will end it, in 15 minutes perhaps; until then readers wait, and wonder why."""
    silent = _transaction(state="Ongoing", timeout_ms=15 * MINUTE, last_written=NOW - 2 * MINUTE)
    assert found(judge(_case(transactions=[silent]))).severity is Severity.NOTICE


def test_a_tool_that_was_run_later_does_not_hide_what_surveys_saw() -> None:
    """kafka-consumer-groups tells no last stable offset; it stood still from look to look before."""
    seen = [an_end(400, stable=300, at=NOW - 6 * MINUTE), an_end(450, stable=300, at=NOW - 4 * MINUTE)]
    tool = an_end(500, earliest=-1, stable=-1)
    hanging = _transaction(at=NOW - 4 * MINUTE)
    assert found(judge(_case(*seen, tool, transactions=[hanging]))).severity is Severity.CRITICAL
    moved = [seen[0], an_end(450, stable=450, at=NOW - 4 * MINUTE)]
    assert missing(judge(_case(*moved, tool, transactions=[hanging])))


def test_a_transaction_is_no_older_than_when_it_was_seen() -> None:
    """Near miss: logs go on for long after the last survey, and the transaction may have ended since."""
    seen = NOW - 20 * MINUTE
    young = _transaction(state="Ongoing", timeout_ms=60_000, last_written=seen - 5 * SECOND, at=seen)
    assert judge(_case(an_end(500, stable=300, at=seen), transactions=[young])) is ABSENT
