"""KLP209: as many members as the brokers allow."""

from kelpie.cluster import ClusterView
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.group_full import judge
from kelpie.observations import EventKind
from tests.doctor.building import MINUTE, NOW, a_case, a_cluster, a_member, a_state, events, found, missing

TWO = (a_member("app-1", 0), a_member("app-2", 1))


def _cluster(limit: object, name: str = "group.max.size", of: str = "broker") -> ClusterView:
    return a_cluster(settings={(of, name): str(limit)})


def test_a_refused_consumer_says_so() -> None:
    """Its log is enough; the setting and the members are told if they are known."""
    lines = events(EventKind.GROUP_FULL, NOW - MINUTE, client_id="app-3", error=81)
    finding = found(judge(a_case(cluster=_cluster(2), events=lines, states=[a_state("Stable", *TWO)])))
    assert "Group billing refused app-3, 1 time" in finding.summary
    assert "It has 2 members; group.max.size allows 2." in finding.summary
    assert finding.severity is Severity.WARNING
    assert found(judge(a_case(events=lines))).members == ("app-3",)


def test_a_full_group_will_refuse_the_next_one() -> None:
    """That can be seen before anybody is refused."""
    finding = found(judge(a_case(cluster=_cluster(2, of="broker 1"), states=[a_state("Stable", *TWO)])))
    assert finding.severity is Severity.NOTICE
    assert "is full: the next member will be refused" in finding.summary


def test_a_group_with_room_is_none() -> None:
    """One place is left; and a group of the new protocol has its own limit."""
    assert judge(a_case(cluster=_cluster(3), states=[a_state("Stable", *TWO)])) is ABSENT
    assert judge(a_case(cluster=_cluster(2**31 - 1), states=[a_state("Stable", *TWO)])) is ABSENT
    newer = a_state("Stable", *TWO, kind="consumer")
    assert missing(judge(a_case(cluster=_cluster(2), states=[newer])))[0].startswith(
        "group.consumer.max.size"
    )


def test_without_settings_and_logs_nobody_can_say() -> None:
    """A broker of 0.9 tells no settings."""
    assert missing(judge(a_case(states=[a_state("Stable", *TWO)])))
    assert judge(a_case(events=events(EventKind.JOINED, NOW))) is ABSENT
