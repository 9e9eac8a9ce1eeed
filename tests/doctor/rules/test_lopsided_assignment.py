"""KLP208: one has much, another has little."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kelpie.cluster.picture import build_cluster
from kelpie.doctor.balance import fair_share
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.lopsided_assignment import judge
from kelpie.model.names import TopicPartition
from kelpie.observations import Member, Observations, PartitionView
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


def test_between_two_cooperative_rebalances_it_is_too_early_to_say() -> None:
    """Near miss: app-1 gave half of the partitions up, and the next rebalance assigns them to app-2."""
    members = (_member("app-1", "t-0", partitions=2), _member("app-2"))
    state = a_state("Stable", *members)._replace(protocol="cooperative-sticky")
    views = [PartitionView("t-0", number, leader=1, replicas=(1,), in_sync=(1,)) for number in range(4)]
    halfway, whole = (build_cluster(Observations(partitions=each)) for each in (views, views[:2]))
    assert "a second look" in missing(judge(a_case(cluster=halfway, states=[state])))[0]
    assert found(judge(a_case(cluster=whole, states=[state])))


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


def _of(name: str, subscribed: str, assigned: str) -> Member:
    names = tuple(TopicPartition(each[0], int(each[1:])) for each in assigned.split())
    return Member(name, client_id=name, subscribed=tuple(subscribed), assigned=names)


def test_members_of_different_subscriptions_are_compared_with_what_could_be() -> None:
    """All of b could go to the two that do little; a is the first one's alone."""
    members = (_of("app-1", "ab", "a0 a1 b0 b1 b2 b3"), _of("app-2", "b", ""), _of("app-3", "b", ""))
    finding = found(judge(a_case(states=[a_state("Stable", *members, protocol="roundrobin")])))
    assert "app-1 has 6 partitions, app-3 has 0; 2 would be fair." in finding.summary


def test_what_only_one_member_subscribes_to_is_not_lopsided() -> None:
    """Nobody else could have it."""
    members = (_of("app-1", "ab", "a0 a1 a2 a3 a4 a5"), _of("app-2", "b", "b0"), _of("app-3", "b", "b1"))
    assert judge(a_case(states=[a_state("Stable", *members)])) is ABSENT


def test_a_chain_of_subscriptions_is_followed() -> None:
    """app-2 could take of b what app-1 has, if app-3 took of c what app-2 has: 2 each."""
    members = (_of("app-1", "ab", "a0 b0 b1 b2"), _of("app-2", "bc", "c0 c1"), _of("app-3", "c", ""))
    state = a_state("Stable", *members)
    assert fair_share(state) == 2
    assert found(judge(a_case(states=[state]))).members == ("app-1",)


@given(st.lists(st.tuples(st.integers(1, 15), st.integers(1, 6)), min_size=1, max_size=4), st.integers(2, 4))
def test_the_fair_share_is_the_best_of_all_assignments(topics: list[tuple[int, int]], members: int) -> None:
    """Compared with all assignments of small groups. A topic: who reads it, in bits, and its partitions."""
    readers = [
        [at for at in range(members) if bits >> at & 1] or [0] for bits, count in topics for _ in range(count)
    ][:6]
    best = min(max(Counter(choice).values()) for choice in product(*readers))
    subscribed = [tuple(f"t-{n}" for n, its in enumerate(readers) if at in its) for at in range(members)]
    first = [its[0] for its in readers]
    roster = [
        Member(
            f"m-{at}",
            subscribed=subscribed[at],
            assigned=tuple(TopicPartition(f"t-{n}", 0) for n, owner in enumerate(first) if owner == at),
        )
        for at in range(members)
    ]
    assert fair_share(a_state("Stable", *roster)) == best
