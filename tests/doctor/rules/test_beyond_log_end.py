"""KLP304: the group stands where the log no longer, or not yet, is."""

from typing import Any

from kelpie.cluster.topics import topics_of
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.beyond_log_end import judge
from kelpie.model.names import TopicPartition
from kelpie.observations import Committed, LeaderEpochEnd, LogEnds, TopicView
from tests.doctor.building import (
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
    commits,
    found,
    looks,
    missing,
)

READS = a_state("Stable", a_member("app-1", 0))


def _case(*ends: LogEnds, committed: Committed, epoch: int = 5, **fields: Any) -> Case:
    cluster = a_cluster(
        a_view(0, 1, topic="orders", leader_epoch=epoch), ends=ends, **fields.pop("cluster", {})
    )
    return a_case(cluster=cluster, **{"states": [READS], **looks(committed), **fields})


def test_after_a_truncation_the_group_goes_to_the_end_of_the_epoch() -> None:
    """An unclean election: what the new leader wrote behind the end of the old epoch was never read."""
    end = LeaderEpochEnd("orders", 0, 4, 4, 600, at=NOW, source="broker 1")
    epochs = {"epoch_ends": {TopicPartition("orders", 0): (end,)}}
    finding = found(judge(_case(an_end(800), committed=a_committed(1000, leader_epoch=4), cluster=epochs)))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing stands beyond the end of the log: its offset in orders-0 is 1000, and the log ends at "
        "800; the log has been cut off."
    )
    assert finding.remedies[0].command.endswith("--reset-offsets --to-offset 600 --dry-run")
    assert "orders-0: leader epoch 4 ends at 600" in [each.text for each in finding.evidence]


def test_a_log_that_was_longer_at_an_earlier_look_was_cut_off() -> None:
    """Where the logs part is not known: only the beginning is safe, and never the end."""
    before = an_end(1100, at=NOW - MINUTE)
    finding = found(judge(_case(before, an_end(800), committed=a_committed(1000))))
    assert "the log has been cut off" in finding.summary
    assert "kelpie reset -b kafka-1:9092 billing --to-earliest" in finding.remedies[0].command


def test_after_a_wrong_commit_the_group_goes_to_the_commit_before_it() -> None:
    """A tool commits without a leader epoch. No leader was elected since the commit before: no truncation."""
    rows = [*commits((NOW - MINUTE, 700), leader_epoch=5), *commits((NOW, 5000))]
    finding = found(judge(_case(an_end(800), committed=a_committed(5000), commits=rows)))
    assert "the log never held it: a wrong offset was committed" in finding.summary
    assert finding.remedies[0].command.endswith("--reset-offsets --to-offset 700 --dry-run")


def test_without_proof_the_cause_stays_open_and_the_beginning_is_safe() -> None:
    """The leader has changed since the commit before: the records up to it may be others."""
    rows = [*commits((NOW - MINUTE, 700), leader_epoch=4), *commits((NOW, 5000))]
    for history in (rows, []):
        finding = found(judge(_case(an_end(800), committed=a_committed(5000), commits=history)))
        assert "which of the two is not known" in finding.summary
        assert "--to-earliest" in finding.remedies[0].command
    assert "--to-latest" not in str(finding)


def test_the_target_of_mirrormaker_is_ahead_for_a_while() -> None:
    """Its offsets come before its records: a notice, and a warning once it lasts."""
    sign = TopicView("us.checkpoints.internal", "X", told_by=1, at=NOW, source="broker 1")
    known = {"known_topics": topics_of([sign], {}, {})}
    nobody: dict[str, Any] = {"states": [a_state("Empty")], "cluster": known}
    committed = a_committed(1000, topic="us.orders")
    finding = found(judge(_case(an_end(800, topic="us.orders"), committed=committed, **nobody)))
    assert finding.severity is Severity.NOTICE
    assert "MirrorMaker writes offsets ahead of the records that it copies" in finding.summary
    assert not any(remedy.command for remedy in finding.remedies)
    long_ago = NOW - 11 * MINUTE
    ends = [an_end(700, topic="us.orders", at=long_ago + SECOND), an_end(800, topic="us.orders")]
    seen = {TopicPartition("us.orders", 0): (committed._replace(at=long_ago), committed)}
    finding = found(judge(_case(*ends, committed=committed, committed_over_time=seen, **nobody)))
    assert finding.severity is Severity.WARNING
    assert finding.since == long_ago
    with_members = found(judge(_case(an_end(800, topic="us.orders"), committed=committed, cluster=known)))
    assert "MirrorMaker" not in with_members.summary, "it writes no offsets of groups that have members"


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
