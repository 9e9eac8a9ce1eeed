"""KLP208: one has much, another has little."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.lopsided_assignment import judge
from kelpie.model.names import TopicPartition
from kelpie.observations import Member
from tests.doctor.building import a_case, a_member, a_state, found, missing

TOPICS = tuple(f"t-{number}" for number in range(6))


def _member(name: str, *topics: str, partitions: int = 1) -> Member:
    assigned = tuple(TopicPartition(topic, number) for topic in topics for number in range(partitions))
    return Member(name, client_id=name, subscribed=TOPICS, assigned=assigned)


def test_range_over_many_small_topics() -> None:
    """One partition a topic: the first member gets them all."""
    states = [a_state("Stable", _member("app-1", *TOPICS), _member("app-2"), _member("app-3"))]
    finding = found(judge(a_case(states=states)))
    assert "app-1 has 6 partitions, app-3 has 0; 2 would be fair." in finding.summary
    assert "deals out each of the 6 topics on its own" in finding.summary
    assert finding.severity is Severity.WARNING
    assert finding.members == ("app-1",)
    assert "cooperative-sticky,range" in finding.remedies[0].text


def test_somewhat_lopsided_is_worth_knowing() -> None:
    """Four partitions a topic for three members: 2, 1, 1, and that six times over."""
    states = [
        a_state(
            "Stable",
            _member("app-1", *TOPICS, partitions=2),
            _member("app-2", *TOPICS),
            _member("app-3", *TOPICS),
        )
    ]
    assert found(judge(a_case(states=states))).severity is Severity.NOTICE


def test_what_cannot_be_more_even_is_none() -> None:
    """Seven partitions for three members: 3, 2, 2. One for two members: 1 and 0."""
    states = [a_state("Stable", a_member("a", 0, 1, 2), a_member("b", 3, 4), a_member("c", 5, 6))]
    assert judge(a_case(states=states)) is ABSENT
    assert judge(a_case(states=[a_state("Stable", a_member("a", 0), a_member("b"))])) is ABSENT


def test_members_with_other_subscriptions_are_none() -> None:
    """Who reads a large topic alone has more."""
    states = [a_state("Stable", a_member("a", 0, 1, 2, 3, 4, 5), a_member("b", 0, topic="small"))]
    assert judge(a_case(states=states)) is ABSENT


def test_groups_that_are_no_consumers_and_assignors_of_ones_own_are_none() -> None:
    """Connect deals out tasks; an assignor that weighs partitions knows what it does."""
    members = (a_member("a", 0, 1, 2, 3, 4, 5), a_member("b"))
    assert judge(a_case(states=[a_state("Stable", *members, protocol_type="connect")])) is ABSENT
    assert judge(a_case(states=[a_state("Stable", *members, protocol="by-lag")])) is ABSENT
    assert judge(a_case(states=[a_state("PreparingRebalance", *members)])) is ABSENT


def test_without_assignments_nobody_can_say() -> None:
    """A tool's output may not show them."""
    unread = Member("b", subscribed=None, assigned=None)
    assert missing(judge(a_case(states=[a_state("Stable", a_member("a", 0), unread)])))
    assert missing(judge(a_case()))
