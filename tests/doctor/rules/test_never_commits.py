"""KLP312: members read, and nothing is ever committed."""

from typing import Any

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.never_commits import judge
from kelpie.observations import Generation, LogEnds
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    an_answer,
    an_end,
    commits,
    found,
    looks,
    missing,
)

MEMBER = a_member("app-1", 0, session_timeout_ms=45_000)
TOLD = an_answer(asked="OffsetFetch")
JOINED = NOW - 10 * MINUTE


def _case(*ends: LogEnds, **fields: Any) -> Case:
    own = {
        "states": [a_state("Stable", a_member("app-1", 0))],
        "generations": [Generation("billing", 1, (MEMBER,), at=JOINED)],
        "answers": [TOLD],
        **fields,
    }
    return a_case(cluster=a_cluster(ends=ends), **own)


def test_members_that_hold_partitions_and_commit_nothing_are_found() -> None:
    """Other tools do not show such a group at all."""
    finding = found(judge(_case(an_end(700, last_written=NOW - 2 * MINUTE))))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing never commits: 1 member held orders-0 for 10 min, records came in, and nothing "
        "is committed."
    )
    assert finding.since == JOINED
    assert finding.members == ("app-1",)


def test_two_looks_show_that_records_came() -> None:
    """Where producers write all the time, the newest record is always new."""
    ends = [an_end(100, at=NOW - 3 * MINUTE), an_end(200, at=NOW - MINUTE), an_end(300, last_written=NOW)]
    found(judge(_case(*ends)))


def test_a_group_that_commits_anywhere_commits() -> None:
    """Near miss: one commit, now or in its history, is enough."""
    end = an_end(700, last_written=NOW - 2 * MINUTE)
    assert judge(_case(end, **looks(a_committed(7, partition=3)))) is ABSENT
    assert judge(_case(end, commits=commits((NOW - MINUTE, 3)))) is ABSENT


def test_a_group_without_partitions_has_nothing_to_commit() -> None:
    """Workers of Connect are in groups, too; share groups commit nothing."""
    end = an_end(700, last_written=NOW - 2 * MINUTE)
    assert judge(_case(end, states=[a_state("Stable", a_member("worker-1"))])) is ABSENT
    assert judge(_case(end, states=[a_state("Stable", a_member("app-1", 0), kind="share")])) is ABSENT


def test_a_new_member_has_time_to_commit() -> None:
    """Its session timeout, which is longer than nine commits of default clients."""
    new = [Generation("billing", 1, (MEMBER,), at=NOW - 20 * SECOND)]
    assert missing(judge(_case(an_end(700, last_written=NOW - 5 * SECOND), generations=new)))


def test_without_records_since_it_joined_nobody_can_say() -> None:
    """librdkafka commits nothing where it has read nothing."""
    assert missing(judge(_case(an_end(700, last_written=JOINED - MINUTE))))


def test_without_the_coordinators_answer_nobody_can_say() -> None:
    """Nothing told is not nothing committed."""
    assert missing(judge(_case(an_end(700), answers=[]))) == ("its committed offsets",)
    assert missing(judge(a_case())) == ("who is in the group",)
    assert missing(judge(_case(an_end(700), generations=[], states=[a_state("Stable", MEMBER, at=None)])))


def test_a_streams_application_on_its_own_protocol_is_judged_too() -> None:
    """Kafka 4.1: its members hold active tasks, and it commits as a consumer group does."""
    own = a_state("Stable", a_member("app-1", 0), kind="streams", protocol_type="streams", protocol="")
    earlier = own._replace(at=JOINED)
    case = _case(an_end(700, last_written=NOW - 2 * MINUTE), states=[earlier, own], generations=[])
    assert "never commits" in found(judge(case)).summary
