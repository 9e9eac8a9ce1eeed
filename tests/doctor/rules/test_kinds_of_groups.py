"""Share groups, Kafka Streams, Kafka Connect, and consumers that commit without joining."""

from dataclasses import replace
from typing import Any

import pytest

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.positions import IllPeriod
from kelpie.doctor.report import is_judged, unjudged
from kelpie.doctor.rules import idle_members, lopsided_assignment, rebalance_storm, stalled, stopped
from kelpie.observations import Generation, GroupState, LogEnds, Member
from kelpie.observations.groups import SharePosition
from tests.doctor.building import (
    DAY,
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

WORKER = a_member("worker-1", 0, topic="jobs")


def _share(start: int, lag: int, *members: Member, ago: int = 0, **fields: Any) -> GroupState:
    """A share group as its coordinator describes it, with its start in jobs-0."""
    return a_state(
        "Stable" if members else "Empty",
        *members,
        kind="share",
        protocol_type="share",
        protocol="simple",
        at=NOW - ago * SECOND,
        share_positions=(SharePosition("jobs", 0, start, lag),),
        **fields,
    )


def _jobs(latest: int = 100, earliest: int = 0) -> ClusterView:
    return a_cluster(
        *an_offsets_topic(), a_view(0, 1, topic="jobs"), ends=[an_end(latest, earliest, topic="jobs")]
    )


def _share_case(*states: GroupState, cluster: ClusterView | None = None) -> Case:
    return a_case(cluster=cluster or _jobs(), states=states, listed=True, known_from=("listed by broker 1",))


def test_a_share_group_whose_members_take_no_records_is_stalled() -> None:
    """A record that fails is given up after five deliveries of 30 s: longer than that, nobody reads."""
    finding = found(stalled.judge(_share_case(_share(40, 60, WORKER, ago=180), _share(40, 60, WORKER))))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Share group billing has not moved in jobs-0 for 3 min at least, though 1 member is there; "
        "60 records wait."
    )
    assert finding.check.startswith("kafka-share-groups.sh --bootstrap-server kafka-1:9092 --describe")


def test_a_share_group_stays_stopped_when_the_look_that_saw_it_first_is_kept_no_more() -> None:
    """Seen on 4.3.1 with --watch: stopped, and after a minute undetermined, as few looks are kept."""
    case = _share_case(_share(40, 55, ago=5), _share(40, 60))
    missing(stopped.judge(case))
    ill = replace(case, ill=(IllPeriod(NOW - MINUTE, NOW - SECOND),))
    assert found(stopped.judge(ill)).since == NOW - MINUTE
    moved = replace(case, ill=(IllPeriod(NOW - MINUTE, NOW - 10 * SECOND),))
    missing(stopped.judge(moved))


def test_a_share_group_whose_topic_is_gone_is_not_judged_from_memory() -> None:
    """Its positions are told no more. KLP207 says that the topic is missing."""
    earlier = (_share(40, 60, WORKER, ago=400), _share(40, 60, WORKER, ago=200))
    now = _share(40, 60, WORKER)._replace(share_positions=())
    assert found(stalled.judge(_share_case(*earlier, now)))
    gone = a_cluster(*an_offsets_topic(), a_view(0, 1, topic="orders"))
    missing(stalled.judge(_share_case(*earlier, now, cluster=gone)))


@pytest.mark.parametrize(
    "earlier",
    [
        _share(39, 60, WORKER, ago=180),  # Its start moved.
        _share(40, 61, WORKER, ago=180),  # A record behind the start was done.
        _share(40, 0, WORKER, ago=180),  # The records came since then.
    ],
)
def test_a_share_group_that_does_records_is_none(earlier: GroupState) -> None:
    """Records are done in any order: the start may stand while others are acknowledged."""
    assert stalled.judge(_share_case(earlier, _share(100, 0, WORKER))) is ABSENT
    judgement = stalled.judge(_share_case(earlier, _share(40, 60, WORKER)))
    assert judgement is ABSENT or missing(judgement)


def test_a_locked_record_is_waited_for() -> None:
    """The brokers' own settings say for how long one record may hold a share group up."""
    states = (_share(40, 60, WORKER, ago=100), _share(40, 60, WORKER))
    assert missing(stalled.judge(_share_case(*states)))
    settings = {("broker", "group.share.record.lock.duration.ms"): "15000"}
    quick = a_cluster(
        *an_offsets_topic(), a_view(0, 1, topic="jobs"), ends=[an_end(100, topic="jobs")], settings=settings
    )
    assert found(stalled.judge(_share_case(*states, cluster=quick)))


def test_before_4_2_the_ends_of_logs_show_that_records_wait() -> None:
    """Its brokers tell the start and no lag: records wait since a log end beyond the start was seen."""
    states = (_share(40, -1, WORKER, ago=400), _share(40, -1, WORKER))
    assert missing(stalled.judge(_share_case(*states)))
    seen = [
        an_end(40, topic="jobs", at=NOW - 400_000),
        an_end(90, topic="jobs", at=NOW - 200_000),
        an_end(90, topic="jobs"),
    ]
    cluster = a_cluster(*an_offsets_topic(), a_view(0, 1, topic="jobs"), ends=seen)
    finding = found(stalled.judge(_share_case(*states, cluster=cluster)))
    assert "for 3.33 min at least" in finding.summary
    assert "50 records wait" in finding.summary


def test_a_share_group_without_members_has_stopped() -> None:
    """Two looks show the same start, and records wait."""
    finding = found(stopped.judge(_share_case(_share(40, 60, ago=60), _share(40, 60))))
    assert finding.summary == (
        "Share group billing has stopped: it has no members; 60 records wait in jobs-0, and none was "
        "acknowledged for 1 min at least."
    )
    assert "kafka-share-groups.sh" in finding.remedies[1].command
    assert missing(stopped.judge(_share_case(_share(40, 60))))
    assert stopped.judge(_share_case(_share(100, 0, ago=60), _share(100, 0))) is ABSENT


def test_a_share_group_is_well_only_if_that_is_known() -> None:
    """Without a position nobody knows whether it reads: it is not judged, and the verdict says so."""
    cluster = _jobs()
    diagnosis = diagnose_all(cluster, [_share_case(_share(-1, -1, WORKER), cluster=cluster)])
    assert unjudged(diagnosis) == ("billing",)
    assert not is_judged(diagnosis)
    read_all = diagnose_all(cluster, [_share_case(_share(100, 0, WORKER), cluster=cluster)])
    assert is_judged(read_all)
    empty = _jobs(0)
    assert is_judged(diagnose_all(empty, [_share_case(_share(-1, -1, WORKER), cluster=empty)]))


def test_no_rule_on_commits_judges_a_share_group() -> None:
    """It commits nothing: that is no fault (KLP312, KLP301), and it has no generations."""
    cluster = _jobs()
    states = (_share(40, 60, WORKER, ago=180), _share(40, 60, WORKER))
    diagnosis = diagnose_all(cluster, [_share_case(*states, cluster=cluster)])
    assert {finding.code for finding in diagnosis.findings} == {"KLP309"}


def test_a_group_that_is_listed_and_not_described_is_neither_empty_nor_well() -> None:
    """Early releases list groups of the Streams protocol, and have no request that describes them."""
    cluster = a_cluster(*an_offsets_topic(), ends=[an_end(100)])
    listed = a_state("Stable", kind="streams", protocol_type="streams", protocol="")
    case = a_case(
        cluster=cluster,
        states=[listed],
        commits=commits(*((NOW - HOUR + 5000 * number, number) for number in range(9))),
        history_from=NOW - DAY,
        **looks(a_committed(8)),
    )
    assert missing(stalled.judge(case)) == ("who is in the group",)
    assert "it has no members" not in found(stopped.judge(case)).summary
    assert unjudged(diagnose_all(cluster, [case])) == ("billing",)


def test_a_group_of_the_streams_protocol_is_judged_by_its_commits() -> None:
    """Its tasks are partitions of the topics that it reads, and it commits as any group."""
    cluster = a_cluster(
        *an_offsets_topic(), a_view(0, 1, topic="orders"), ends=[an_end(100, last_written=NOW - 5 * MINUTE)]
    )
    state = a_state("Stable", a_member("app-1", 0, 7), kind="streams", protocol_type="streams", protocol="")
    history = commits(*((NOW - HOUR + 5000 * number, min(number, 50)) for number in range(720)))
    case = a_case(cluster=cluster, states=[state], commits=history, history_from=NOW - DAY)
    assert "has not moved in orders-0" in found(stalled.judge(case)).summary
    assert [str(name) for name in case.reads.partitions] == ["orders-0"], "no topic has a partition 7"
    assert found(stalled.judge(case)).check.startswith("kafka-streams-groups.sh")
    assert is_judged(diagnose_all(cluster, [case]))


def test_a_streams_application_whose_members_were_seen_has_run() -> None:
    """It commits too seldom to have a rhythm, and its members are in no record that Kelpie reads."""
    cluster = a_cluster(*an_offsets_topic(), ends=[an_end(100, last_written=NOW - 5 * MINUTE)])
    kind = {"kind": "streams", "protocol_type": "streams", "protocol": ""}
    before = a_state("Stable", a_member("app-1", 0), at=NOW - 10 * MINUTE, **kind)
    history = commits((NOW - 8 * MINUTE, 50))
    rows = {"commits": history, "history_from": NOW - DAY, **looks(a_committed(50))}
    empty = a_state("Empty", **kind)
    assert (
        "it has no members"
        in found(stopped.judge(a_case(cluster=cluster, states=[before, empty], **rows))).summary
    )
    assert missing(stopped.judge(a_case(cluster=cluster, states=[empty], **rows)))


def test_workers_of_connect_are_no_consumers() -> None:
    """They have connectors and tasks, no partitions: not idle, not lopsided, not stalled, not stopped."""
    workers = [Member(f"connect-{number}", f"connect-{number}", "/10.0.0.1") for number in range(3)]
    state = a_state("Stable", *workers, protocol_type="connect", protocol="sessioned")
    case = a_case(states=[state], history_from=NOW - DAY)
    for rule in (idle_members, lopsided_assignment, stalled, stopped):
        assert rule.judge(case) is ABSENT, rule


def _generations(count: int, protocol_type: str, protocol: str, *members: Member) -> list[Generation]:
    return [
        Generation(
            "billing", number, members, protocol_type, protocol, at=NOW - (count - number) * 5 * SECOND
        )
        for number in range(1, count + 1)
    ]


def test_connectors_that_are_changed_make_no_storm() -> None:
    """Each connector that is created or changed costs a rebalance in which no worker comes or goes."""
    workers = (Member("c-1", "c-1"), Member("c-2", "c-2"))
    rows = _generations(20, "connect", "sessioned", *workers)
    assert rebalance_storm.judge(a_case(generations=rows)) is ABSENT


def test_a_redeployment_of_a_streams_application_makes_no_storm() -> None:
    """Its assignor is called "stream" and works in two rounds, as cooperative-sticky does."""
    members = [a_member(f"thread-{number}", number) for number in range(3)]
    rows = _generations(13, "consumer", "stream", *members)
    assert rebalance_storm.judge(a_case(generations=rows)) is ABSENT
    assert found(rebalance_storm.judge(a_case(generations=_generations(24, "consumer", "stream", *members))))


SIMPLE = a_state("Empty", protocol_type="", protocol="")


def _spark(*ends: LogEnds, last: int = NOW - 5 * SECOND, stuck: bool = True) -> Case:
    """It commits in two partitions every 5 s, and nobody is ever in the group."""
    times = range(NOW - HOUR, last + 1, 5 * SECOND)
    history = commits(*((at, 10 if stuck else number) for number, at in enumerate(times)))
    history += commits(*((at, number) for number, at in enumerate(times)), partition=1)
    offsets = looks(a_committed(history[len(times) - 1].offset), a_committed(history[-1].offset, partition=1))
    cluster = a_cluster(ends=ends)
    return a_case(cluster=cluster, states=[SIMPLE], commits=history, history_from=NOW - DAY, **offsets)


def test_a_job_that_commits_without_joining_may_stall() -> None:
    """Spark, Flink, assign(): it goes on committing, at the same offset, and records wait."""
    ends = (an_end(500, last_written=NOW - 5 * MINUTE), an_end(719, partition=1))
    finding = found(stalled.judge(_spark(*ends)))
    assert "has not moved in orders-0" in finding.summary
    assert "commits offset 10 again and again" in finding.summary
    assert "Kafka does not know them" in finding.why
    assert stalled.judge(_spark(an_end(719), an_end(719, partition=1), stuck=False)) is ABSENT


def test_a_job_that_commits_without_joining_may_stop() -> None:
    """Nobody was ever in the group: that is how it works, and no sign that it is down."""
    ends = (an_end(900, last_written=NOW - 5 * MINUTE), an_end(900, partition=1))
    finding = found(stopped.judge(_spark(*ends, last=NOW - 10 * MINUTE, stuck=False)))
    assert "commit without being in the group" in finding.summary
    assert "it has no members" not in finding.summary
    assert all("--delete" not in remedy.command for remedy in finding.remedies)
