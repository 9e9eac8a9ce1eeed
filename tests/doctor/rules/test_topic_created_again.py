"""KLP314: the offset is of a topic that was deleted, and another one has its name."""

from typing import Any

from kelpie.cluster.topics import topics_of
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules import beyond_log_end, rewound
from kelpie.doctor.rules.topic_created_again import judge
from kelpie.observations import LogEnds, PartitionView, TopicView
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
    views,
)

READS = a_state("Stable", a_member("app-1", 0))
OLD = TopicView("orders", "old", at=NOW - 10 * MINUTE, source="an earlier survey")
NEW = TopicView("orders", "new", told_by=1, at=NOW, source="broker 1")


def _cluster(*topics: TopicView, end: LogEnds, view: PartitionView | None = None, **fields: Any) -> Any:
    view = view or a_view(0, 1, topic="orders", leader_epoch=0)
    known = topics_of(topics, {end.name: (end,)}, views(view))
    return a_cluster(view, ends=[end], known_topics=known, **fields)


def test_another_id_and_an_offset_beyond_the_end_show_a_new_topic() -> None:
    """The new topic is read from its beginning: at the end, its 30 records would be skipped."""
    case = a_case(cluster=_cluster(OLD, NEW, end=an_end(30)), states=[READS], **looks(a_committed(1000)))
    finding = found(judge(case))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "Group billing stands in orders at offsets of a topic that was deleted; another one of this name was "
        "created since. Its offset in orders-0 is 1000: an earlier look saw another topic of this name."
    )
    assert "kelpie reset -b kafka-1:9092 billing --to-earliest" in finding.remedies[0].command
    assert "--to-latest" not in str(finding.remedies)
    assert [each.text for each in finding.evidence][1:] == [
        "topic orders has id old",
        "topic orders has id new",
    ]
    assert beyond_log_end.judge(case) is ABSENT, "it is told once"


def test_an_offset_that_was_committed_before_is_old_though_the_new_log_has_grown_past_it() -> None:
    """Nothing refuses it: what lies before it in the new topic would be skipped without a word."""
    cluster = _cluster(OLD, NEW, end=an_end(5000))
    rows = commits((NOW - 11 * MINUTE, 1000))
    found(judge(a_case(cluster=cluster, states=[READS], commits=rows, **looks(a_committed(1000)))))
    seen = looks(a_committed(1000, at=NOW - 10 * MINUTE), a_committed(1000))
    found(judge(a_case(cluster=cluster, states=[READS], **seen)))


def test_an_offset_in_the_new_topic_is_no_rewind_whatever_stood_in_the_old_one() -> None:
    """Seen on 4.3.1, where the leader of the new partition did not tell the end of its log yet."""
    known = topics_of((OLD, NEW), {}, {})
    cluster = a_cluster(a_view(0, 1, topic="orders", leader_epoch=0), known_topics=known)
    rows = commits((NOW - 11 * MINUTE, 1000), (NOW - MINUTE, 13))
    assert rewound.judge(a_case(cluster=cluster, commits=rows, history_from=NOW - 12 * MINUTE)) is ABSENT
    same = a_cluster(a_view(0, 1, topic="orders", leader_epoch=0), known_topics=topics_of((OLD,), {}, {}))
    found(rewound.judge(a_case(cluster=same, commits=rows, history_from=NOW - 12 * MINUTE)))


def test_a_commit_carries_the_id_of_its_topic() -> None:
    """Brokers write it since Kafka 4.1: the first look is enough."""
    cluster = _cluster(NEW, end=an_end(5000))
    rows = commits((NOW, 1000), topic_id="old")
    case = a_case(cluster=cluster, states=[READS], commits=rows, **looks(a_committed(1000)))
    assert "committed for the topic with id old, and the id is now new" in found(judge(case)).summary
    rows = commits((NOW, 1000), topic_id="new")
    assert judge(a_case(cluster=cluster, commits=rows, **looks(a_committed(1000)))) is ABSENT


def test_an_earlier_commit_was_for_another_topic() -> None:
    """A consumer committed its old position into the new topic; the history has a commit for the old one."""
    cluster = _cluster(NEW, end=an_end(30))
    rows = [*commits((NOW - MINUTE, 1000), topic_id="old"), *commits((NOW, 1000), topic_id="new")]
    case = a_case(cluster=cluster, states=[READS], commits=rows, **looks(a_committed(1000)))
    assert "an earlier commit was for the topic with id old" in found(judge(case)).summary
    inside = a_case(cluster=_cluster(NEW, end=an_end(5000)), commits=rows, **looks(a_committed(1000)))
    assert judge(inside) is ABSENT, "it may have been committed for the new one"


def test_a_leader_epoch_that_went_back_shows_a_new_topic() -> None:
    """Epochs begin again at 0 when a topic is created anew; releases before 2.8 have no topic ids."""
    cluster = a_cluster(a_view(0, 1, topic="orders", leader_epoch=0), ends=[an_end(30)])
    for latest in (30, 5000):
        cluster = a_cluster(a_view(0, 1, topic="orders", leader_epoch=0), ends=[an_end(latest)])
        case = a_case(cluster=cluster, states=[READS], **looks(a_committed(1000, leader_epoch=4)))
        finding = found(judge(case))
        assert "committed in leader epoch 4, and the epoch is now 0" in finding.summary
        assert "--to-earliest" in finding.remedies[0].command
        assert beyond_log_end.judge(case) is ABSENT


def test_an_earlier_look_saw_a_higher_leader_epoch() -> None:
    """Without ids, and though the commit carries no epoch."""
    view = a_view(0, 1, topic="orders", leader_epoch=0)
    before = an_end(900, at=NOW - MINUTE, leader_epoch=3)
    cluster = a_cluster(
        view, ends=[an_end(30)], known_topics=topics_of([], {view.name: (before,)}, views(view))
    )
    found(judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(900)))))


def test_a_broker_that_has_not_heard_of_an_election_shows_no_new_topic() -> None:
    """Near miss, as seen on 3.9.2: a broker that had just joined named the epoch before the newest one, and
    answered last. Nor does an epoch tell anything while the id of the topic is the same.
    """
    before = an_end(900, at=NOW - MINUTE, leader_epoch=7)
    heard = a_view(0, 1, topic="orders", leader_epoch=7, at=NOW - SECOND)
    late = a_view(0, 1, topic="orders", leader_epoch=6, told_by=4)
    assert not topics_of([], {late.name: (before,)}, views(heard, late)).recreations
    ids = [TopicView("orders", topic_id="same", at=at) for at in (NOW - 2 * MINUTE, NOW)]
    assert not topics_of(ids, {late.name: (before,)}, views(late)).recreations
    assert topics_of(ids[1:], {late.name: (before,)}, views(late)).recreations


def test_a_group_that_has_committed_in_the_new_topic_is_well() -> None:
    """Near miss: the topic was created again, and the group reads the new one. Nor was it set back."""
    cluster = _cluster(OLD, NEW, end=an_end(5000))
    rows = commits((NOW - 11 * MINUTE, 9000), (NOW - MINUTE, 400))
    known: dict[str, Any] = {"commits": rows, "history_from": NOW - 12 * MINUTE}
    case = a_case(cluster=cluster, states=[READS], **known, **looks(a_committed(400)))
    assert judge(case) is ABSENT
    assert rewound.judge(case) is ABSENT


def test_the_same_id_is_the_same_topic() -> None:
    """Near miss: an offset beyond the end of a log that was cut off is KLP304."""
    same = OLD._replace(topic_id="new")
    case = a_case(cluster=_cluster(same, NEW, end=an_end(30)), states=[READS], **looks(a_committed(1000)))
    assert judge(case) is ABSENT
    found(beyond_log_end.judge(case))


def test_without_ids_epochs_and_an_earlier_look_nobody_can_say() -> None:
    """Commits of tools carry no leader epoch; before 4.1 they carry no topic id."""
    cluster = _cluster(NEW, end=an_end(5000))
    (what,) = missing(judge(a_case(cluster=cluster, states=[READS], **looks(a_committed(1000)))))
    assert what.startswith("whether orders is the topic in which it committed")
    assert missing(judge(a_case(cluster=cluster))) == ("its committed offsets",)
