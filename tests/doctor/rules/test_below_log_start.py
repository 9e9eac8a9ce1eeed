"""KLP303: the records that the group was to read next are gone."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.below_log_start import judge
from kelpie.observations import EventKind
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
    an_event,
    commits,
    found,
    looks,
    missing,
)

READS = a_state("Stable", a_member("app-1", 0))


def test_records_between_the_offset_and_the_log_start_are_lost() -> None:
    """Retention was faster than the group."""
    cluster = a_cluster(ends=[an_end(9000, earliest=1500)])
    finding = found(judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1200)))))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing has lost 300 records: its offset in orders-0 is 1200, and the log begins at 1500."
    )
    assert [(it.text, it.source) for it in finding.evidence] == [
        ("orders-0: committed offset is 1200", "broker 1"),
        ("orders-0: the log begins at 1500 and ends at 9000", "broker 1"),
    ]
    assert finding.remedies[1].command == (
        "kelpie reset -b kafka-1:9092 billing --to-earliest --topic orders:0"
    )
    assert finding.check == (
        "kafka-get-offsets.sh --bootstrap-server kafka-1:9092 --topic-partitions orders:0 --time -2"
    )


def test_an_offset_at_the_log_start_is_well() -> None:
    """Near miss: the next record to read is the first that is left."""
    cluster = a_cluster(ends=[an_end(9000, earliest=1500)])
    assert judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1500)))) is ABSENT


def test_records_that_the_application_has_read_and_deleted_are_not_lost() -> None:
    """Near miss, as seen on 4.3.1: Kafka Streams commits and deletes between two questions of a survey."""
    cluster = a_cluster(ends=[an_end(9000, earliest=1500)])
    for last, is_lost in ((1500, False), (1300, True)):
        history = commits((NOW - 2 * SECOND, 1200), (NOW - SECOND, last))
        case = a_case(cluster=cluster, states=[READS], commits=history, **looks(a_committed(1200)))
        assert (judge(case) is not ABSENT) is is_lost


def test_one_offset_may_be_the_marker_of_a_transaction() -> None:
    """Everything was read; behind the last record lay a marker, which retention deleted, too."""
    cluster = a_cluster(ends=[an_end(1501, earliest=1501)])
    (what,) = missing(judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1500)))))
    assert what.startswith("whether the one offset before the beginning of the log of orders-0 was a record")
    cluster = a_cluster(ends=[an_end(1502, earliest=1502)])
    assert found(judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1500)))))


def test_a_topic_that_nobody_subscribes_to_any_more_is_a_notice() -> None:
    """Lag on abandoned topics alarms nobody."""
    cluster = a_cluster(ends=[an_end(9000, earliest=1500)])
    state = a_state("Stable", a_member("app-1", 0, topic="payments"))
    finding = found(judge(a_case(cluster=cluster, states=[state], **looks(a_committed(1200)))))
    assert finding.severity is Severity.NOTICE
    assert "no member subscribes to the topic any more" in finding.summary
    assert "--delete-offsets --topic orders" in finding.remedies[0].command


def test_without_log_ends_nobody_can_say() -> None:
    """The offset alone tells nothing."""
    assert missing(judge(a_case(states=[READS], **looks(a_committed(1200))))) == (
        "where the log of orders-0 begins",
    )
    assert missing(judge(a_case(states=[READS]))) == ("its committed offsets",)


def test_a_consumers_log_tells_how_far_it_jumped() -> None:
    """Out of range, then a reset to a higher offset: the records between are lost or skipped."""
    refused = an_event(EventKind.OUT_OF_RANGE, NOW - MINUTE, topic="orders", partition=0, offset=1200)
    up = an_event(EventKind.POSITION_RESET, NOW - 59 * SECOND, topic="orders", partition=0, offset=1500)
    finding = found(judge(a_case(events=[refused, up])))
    assert finding.summary == (
        "Group billing jumped over 300 records of orders-0: offset 1200 was out of range, and it went on "
        "at 1500."
    )
    down = an_event(EventKind.POSITION_RESET, NOW - 59 * SECOND, topic="orders", partition=0, offset=100)
    missing(judge(a_case(events=[refused, down])))
