"""KLP304: the group stands where the log no longer, or not yet, is."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.beyond_log_end import judge
from tests.doctor.building import (
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_end,
    found,
    looks,
    missing,
)

READS = a_state("Stable", a_member("app-1", 0))


def test_an_offset_behind_the_end_of_the_log_shows_a_truncation() -> None:
    """An unclean election: the new leader lacks what the group has read."""
    cluster = a_cluster(a_view(0, 1, topic="orders", leader_epoch=5), ends=[an_end(800)])
    finding = found(
        judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1000, leader_epoch=4))))
    )
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing stands beyond the end of the log: its offset in orders-0 is 1000, and the log ends at "
        "800; the log has been cut off."
    )
    assert "kelpie reset -b kafka-1:9092 billing --to-latest" in finding.remedies[0].command


def test_a_leader_epoch_that_went_back_shows_a_new_topic() -> None:
    """Epochs begin again at 0 when a topic is created anew; then its beginning is where to go."""
    cluster = a_cluster(a_view(0, 1, topic="orders", leader_epoch=0), ends=[an_end(30)])
    finding = found(
        judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1000, leader_epoch=4))))
    )
    assert "the topic was created anew" in finding.summary
    assert "--to-earliest" in finding.remedies[0].command


def test_an_offset_at_the_end_is_well() -> None:
    """Near miss: everything is read."""
    cluster = a_cluster(ends=[an_end(1000)])
    assert judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1000)))) is ABSENT


def test_an_end_that_was_asked_for_before_the_offset_proves_nothing() -> None:
    """The log and a healthy consumer may both have gone on in between."""
    cluster = a_cluster(ends=[an_end(990, at=NOW - SECOND)])
    case = a_case(cluster=cluster, states=[READS], **looks(a_committed(1000, at=NOW)))
    assert missing(judge(case)) == ("where the log of orders-0 ends",)


def test_without_ends_nobody_can_say() -> None:
    """A new leader that does not know its high watermark yet answers error 78."""
    cluster = a_cluster(ends=[an_end(-1, error=78)])
    case = a_case(cluster=cluster, states=[READS], **looks(a_committed(1000)))
    assert missing(judge(case)) == ("where the log of orders-0 ends",)
