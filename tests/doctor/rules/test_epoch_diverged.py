"""KLP305: the offset is there, but not the records that the group had read up to it."""

from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules import topic_created_again
from kelpie.doctor.rules.epoch_diverged import judge
from kelpie.model.names import TopicPartition
from kelpie.observations import EventKind, LeaderEpochEnd
from tests.doctor.building import (
    NOW,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_end,
    an_event,
    commits,
    found,
    looks,
    missing,
)

ORDERS = TopicPartition("orders", 0)


def _case(committed_epoch: int, epoch: int, end: LeaderEpochEnd | None = None, latest: int = 5000) -> Case:
    fields: dict[str, Any] = {"epoch_ends": {ORDERS: (end,)} if end else {}}
    cluster = a_cluster(
        a_view(0, 1, topic="orders", leader_epoch=epoch), ends=[an_end(latest, leader_epoch=epoch)], **fields
    )
    state = a_state("Stable", a_member("app-1", 0))
    return a_case(cluster=cluster, states=[state], **looks(a_committed(1000, leader_epoch=committed_epoch)))


def test_an_epoch_that_ends_before_the_offset_has_been_cut_off() -> None:
    """An unclean election; the log has grown past the offset since, so nothing else shows it."""
    finding = found(judge(_case(4, 6, LeaderEpochEnd("orders", 0, 4, 4, 800, at=NOW, source="broker 1"))))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing will skip records that it has not read: its offset 1000 in orders-0 was "
        "committed in leader epoch 4, which ends at 800: the log was cut off there, and grew again."
    )
    assert "orders-0: leader epoch 4 ends at 800" in [it.text for it in finding.evidence]
    assert finding.remedies[0].command.endswith("--reset-offsets --to-offset 800 --dry-run")


def test_an_epoch_from_the_future_is_left_to_the_rule_for_new_topics() -> None:
    """A topic created anew begins at epoch 0: KLP314 says it."""
    case = _case(4, 0)
    assert judge(case) is ABSENT
    assert "the epoch is now 0" in found(topic_created_again.judge(case)).summary


def test_an_epoch_that_reaches_the_offset_is_well() -> None:
    """Near miss: an ordinary change of leaders."""
    assert judge(_case(4, 6, LeaderEpochEnd("orders", 0, 4, 4, 1000, at=NOW))) is ABSENT
    assert judge(_case(6, 6)) is ABSENT


def test_what_lies_behind_the_end_is_left_to_the_rule_for_that() -> None:
    """KLP304 says it already."""
    assert judge(_case(4, 6, LeaderEpochEnd("orders", 0, 4, 4, 800, at=NOW), latest=900)) is ABSENT


def test_too_little_is_known_without_epochs() -> None:
    """Tools and transactions commit without a leader epoch; old brokers are not asked where epochs end."""
    assert missing(judge(_case(-1, 6))) == ("a leader epoch in the commits of orders-0",)
    assert missing(judge(_case(4, 6))) == ("where leader epoch 4 ends in the log of orders-0",)


def test_a_consumer_that_detected_it_says_so() -> None:
    """Java's consumers since 2.3 log it; once the group has gone on, it is over."""
    line = an_event(EventKind.TRUNCATION_DETECTED, NOW - 1000, topic="orders", partition=0)
    assert found(judge(a_case(events=[line]))).severity is Severity.WARNING
    missing(judge(a_case(events=[line], commits=commits((NOW, 810)))))
