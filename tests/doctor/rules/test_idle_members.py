"""KLP207: members without partitions."""

from kelpie.cluster import ClusterView
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.idle_members import judge
from kelpie.model.names import TopicPartition
from kelpie.observations import Generation, Member
from tests.doctor.building import NOW, a_case, a_cluster, a_member, a_state, a_view, found, missing


def _cluster(partitions: int = 2) -> ClusterView:
    return a_cluster(*(a_view(number, 1, topic="orders") for number in range(partitions)))


BUSY = (a_member("app-1", 0), a_member("app-2", 1))
IDLE = a_member("app-3")


def test_more_members_than_partitions() -> None:
    """No harm is done, so it is a notice."""
    finding = found(judge(a_case(cluster=_cluster(), states=[a_state("Stable", *BUSY, IDLE)])))
    assert finding.summary == ("In group billing, 1 member of 3 got no partition: orders has 2 partitions.")
    assert finding.severity is Severity.NOTICE
    assert finding.members == ("app-3",)
    assert finding.remedies[1].command.endswith("--alter --topic orders --partitions 3")


def test_a_subscription_to_nothing() -> None:
    """A topic that is not there gives no error: the member waits for ever."""
    lost = a_member("app-3", topic="ordres")
    finding = found(judge(a_case(cluster=_cluster(), states=[a_state("Stable", *BUSY, lost)])))
    assert "app-3 subscribed to ordres, which does not exist" in finding.summary
    assert finding.severity is Severity.WARNING


def test_as_many_members_as_partitions_are_none() -> None:
    """Everybody has something to do."""
    assert judge(a_case(cluster=_cluster(), states=[a_state("Stable", *BUSY)])) is ABSENT


def test_a_member_without_partitions_where_there_are_enough_is_lopsided() -> None:
    """That is KLP208's case."""
    states = [a_state("Stable", a_member("app-1", 0, 1, 2), a_member("app-2"))]
    assert judge(a_case(cluster=_cluster(3), states=states)) is ABSENT


def test_during_a_rebalance_nobody_is_idle() -> None:
    """Assignments are on their way."""
    assert judge(a_case(cluster=_cluster(), states=[a_state("CompletingRebalance", *BUSY, IDLE)])) is ABSENT


def test_without_a_description_nobody_can_say() -> None:
    """Nor without the assignments, the subscriptions, or the topics."""
    assert missing(judge(a_case(cluster=_cluster())))
    unread = a_member("app-3", subscribed=None)
    assert missing(judge(a_case(cluster=_cluster(), states=[a_state("Stable", *BUSY, unread)])))
    nowhere = a_cluster(offsets_partitions=None)
    assert missing(judge(a_case(cluster=nowhere, states=[a_state("Stable", *BUSY, IDLE)])))


def test_partitions_of_a_deleted_topic_are_nothing_to_read() -> None:
    """A client keeps them for minutes after the topic is gone, and reads nothing."""
    lost = a_member("app-3", 0, 1, topic="doomed")
    listed = _cluster()
    finding = found(judge(a_case(cluster=listed, states=[a_state("Stable", lost)])))
    assert "app-3 subscribed to doomed, which does not exist" in finding.summary
    assert "is no error to a consumer" in finding.why
    assert finding.evidence[0].text == "app-3: subscribed to doomed, assigned doomed-0 and doomed-1"


def test_what_tools_do_not_print_records_tell() -> None:
    """Descriptions by Kafka's tools have no subscriptions; the generation on disk has them."""
    lost = a_member("app-3", topic="ordres")
    unread = a_member("app-3", subscribed=None)
    known = Generation("billing", 1, (*BUSY, lost), at=NOW)
    states = [a_state("Stable", *BUSY, unread)]
    finding = found(judge(a_case(cluster=_cluster(), states=states, generations=(known,))))
    assert "app-3 subscribed to ordres, which does not exist" in finding.summary


def _topics(number: int, partitions: int) -> ClusterView:
    rows = [a_view(at, 1, topic=f"t-{topic}") for topic in range(number) for at in range(partitions)]
    return a_cluster(*rows)


def _range(name: str, *assigned: tuple[str, int]) -> Member:
    names = tuple(TopicPartition(*each) for each in assigned)
    return Member(name, client_id=name, subscribed=("t-0", "t-1"), assigned=names)


def test_range_leaves_members_idle_though_there_are_partitions_enough() -> None:
    """Two topics of two partitions and three members: each topic goes to the first two. KLP208 is silent."""
    members = (
        _range("app-1", ("t-0", 0), ("t-1", 0)),
        _range("app-2", ("t-0", 1), ("t-1", 1)),
        _range("app-3"),
    )
    finding = found(judge(a_case(cluster=_topics(2, 2), states=[a_state("Stable", *members)])))
    assert finding.members == ("app-3",)
    assert "t-0 and t-1 have 4 partitions, and range deals out each topic on its own" in finding.summary
    assert all("--alter" not in remedy.command for remedy in finding.remedies)
    sticky = a_state("Stable", *members, protocol="cooperative-sticky")
    assert judge(a_case(cluster=_topics(2, 2), states=[sticky])) is ABSENT


def test_more_partitions_are_no_first_advice() -> None:
    """They break the order of keys and joins, and cannot be taken away again: the advice says so."""
    finding = found(judge(a_case(cluster=_cluster(), states=[a_state("Stable", *BUSY, IDLE)])))
    assert finding.remedies[0].command == ""
    assert "cannot be undone" in finding.remedies[-1].text


def test_a_member_of_a_streams_application_may_be_warming_up() -> None:
    """It has no active task and is not idle: it has standbys, or restores state to take over."""
    for streams in ({"protocol": "stream"}, {"protocol": "", "kind": "streams", "protocol_type": "streams"}):
        state = a_state("Stable", *BUSY, IDLE, **streams)
        assert judge(a_case(cluster=_cluster(), states=[state])) is ABSENT


def test_a_regular_expression_is_no_subscription_to_nothing() -> None:
    """With KIP-848 the coordinator evaluates it; the description names no topics then."""
    idle = a_member("app-3", subscribed=(), pattern="orders.*")
    finding = found(judge(a_case(cluster=_cluster(), states=[a_state("Stable", *_by_pattern(), idle)])))
    assert finding.severity is Severity.NOTICE
    assert "1 member of 3 got no partition: orders has 2 partitions" in finding.summary
    other = a_member("app-3", subscribed=(), pattern="bills.*")
    judgement = judge(a_case(cluster=_cluster(), states=[a_state("Stable", *_by_pattern(), other)]))
    assert missing(judgement) == ("which topics match bills.*",)


def _by_pattern() -> tuple[Member, Member]:
    one, two = (a_member(f"app-{at + 1}", at, subscribed=(), pattern="orders.*") for at in (0, 1))
    return one, two


def test_members_of_a_share_group_share_partitions() -> None:
    """More members than partitions is what share groups are for; a topic that is not there is a fault."""
    share = {"kind": "share", "protocol_type": "share", "protocol": "simple"}
    busy = a_state("Stable", *BUSY, a_member("app-3", 1), IDLE, **share)
    assert judge(a_case(cluster=_cluster(), states=[busy])) is ABSENT
    lost = a_state("Stable", *BUSY, a_member("app-3", topic="ordres"), **share)
    assert found(judge(a_case(cluster=_cluster(), states=[lost]))).severity is Severity.WARNING
