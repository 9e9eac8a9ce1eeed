"""Cases out of observations: which groups, what is joined to them, and what is left unknown."""

from kelpie.doctor.case import Case
from kelpie.doctor.cases import build, build_cases
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import (
    Commit,
    EventKind,
    Listing,
    Observations,
    PartitionView,
    Setting,
    Unasked,
    ZooKeeperGroup,
)
from kelpie.observations.positions import NO_OFFSET
from tests.doctor.building import (
    MINUTE,
    NOW,
    a_broker,
    a_committed,
    a_name_on,
    a_state,
    a_view,
    an_end,
    an_event,
    an_offsets_topic,
    commits,
)

ORDERS = TopicPartition("orders", 0)


def case_of(seen: Observations, group: str = "billing") -> Case:
    return next(case for case in build(seen, now=NOW)[1] if case.group == group)


def test_every_group_that_anybody_knows_of_gets_a_case() -> None:
    """The groups that Kafka no longer lists are the ones that matter."""
    seen = Observations(
        listings=[Listing(1, ("listed",), at=NOW)],
        states=[a_state(group="described")],
        commits=commits((NOW, 1), group="in-history"),
        committed=[a_committed(1, group="committed")],
        events=[an_event(EventKind.JOINED, group="in-a-log")],
        known_groups={"known": "an earlier survey"},
    )
    cluster, cases = build(seen, now=NOW)
    assert [case.group for case in cases] == [
        "committed",
        "described",
        "in-a-log",
        "in-history",
        "known",
        "listed",
    ]
    assert all(case.cluster is cluster and case.known_from for case in cases[1:])


def test_a_name_that_kafka_and_zookeeper_both_keep_is_two_cases() -> None:
    """They share nothing but the name; and rows of one name make the cases that all rows together make."""
    seen = Observations(
        states=[a_state(group="billing")],
        zookeeper_groups=[ZooKeeperGroup("billing", (), (), at=NOW), ZooKeeperGroup("old", at=NOW)],
        known_groups={"old": "a log", "nobody": "a log"},
    )
    cluster, cases = build(seen, now=NOW)
    assert [(case.group, case.in_zookeeper) for case in cases] == [
        ("billing", False),
        ("billing (in ZooKeeper)", True),
        ("nobody", False),
        ("old", True),
    ]
    by_name = [case for name in ("billing", "nobody", "old") for case in build_cases(name, seen, cluster)]
    assert by_name == cases
    assert build_cases("unheard-of", seen, cluster) == []


def test_groups_that_are_asked_for_get_a_case_even_if_nobody_knows_them() -> None:
    """A name with a typing error must be told from a healthy group."""
    _, cases = build(Observations(listings=[Listing(1, ("a", "b"))]), now=NOW, groups=["b", "typo"])
    assert [(case.group, bool(case.known_from)) for case in cases] == [("b", True), ("typo", False)]


def test_rows_are_ordered_by_time_and_those_without_one_come_first() -> None:
    """Rules read the last one as the newest."""
    late, early, undated = (a_state(at=at) for at in (NOW, NOW - MINUTE, None))
    assert case_of(Observations(states=[late, undated, early])).states == (undated, early, late)


def test_the_coordinators_answer_outweighs_the_history() -> None:
    """History was read up to some record; the coordinator answers for now."""
    seen = Observations(
        commits=commits((NOW, 7)), committed=[a_committed(9), a_committed(8, at=NOW - MINUTE)]
    )
    case = case_of(seen)
    assert case.committed[ORDERS].offset == 9
    assert [row.offset for row in case.committed_over_time[ORDERS]] == [8, 9]
    assert [row.offset for row in case.commits[ORDERS]] == [7]


def test_without_a_coordinator_the_newest_commit_stands_in() -> None:
    """Where a stricken group stood is what its people ask first."""
    case = case_of(Observations(commits=commits((NOW, 7), (NOW - MINUTE, 5))))
    assert (case.committed[ORDERS].offset, case.committed[ORDERS].at) == (7, NOW)


def test_what_was_removed_after_a_look_is_not_there_any_more() -> None:
    """Later surveys do not ask for a group that is gone, so the last one that saw it is an old one."""
    seen = Observations(
        committed=[a_committed(9, at=NOW - 2 * MINUTE)],
        commits=commits((NOW - 3 * MINUTE, 9), (NOW - MINUTE, NO_OFFSET)),
    )
    assert case_of(seen).committed[ORDERS].offset == NO_OFFSET
    again = Observations(committed=[a_committed(9)], commits=seen.commits)
    assert case_of(again).committed[ORDERS].offset == 9


def test_the_newest_view_of_each_teller_counts() -> None:
    """Brokers may disagree, and each of them may have changed its mind."""
    old, new, other = a_view(0, 1, at=NOW - MINUTE), a_view(0, 2), a_view(0, 1, told_by=2)
    cluster, _ = build(Observations(partitions=[new, old, other]), now=NOW)
    assert set(cluster.views[new.name]) == {new, other}
    assert cluster.earlier_views[new.name] == (old,)


def test_replicas_that_0_9_leaves_out_are_taken_from_who_knew_them() -> None:
    """It names living replicas only; a survey from before, or a describe output, knew all of them."""
    before = a_view(0, 2, (2, 3), told_by=None, at=NOW - MINUTE)
    now = a_view(0, -1, (), told_by=1, error=ErrorCode.LEADER_NOT_AVAILABLE)
    cluster, _ = build(Observations(partitions=[before, now], brokers=[a_broker(1)]), now=NOW)
    view = cluster.view(now.name)
    assert view is not None
    assert (view.leader, view.replicas) == (-1, (2, 3))
    assert [cluster.is_alive(node) for node in (1, 2, 3)] == [True, False, False]


def test_of_several_views_the_one_that_knows_of_most_elections_counts() -> None:
    """By leader epoch; before there were any, by the number of brokers that say so."""
    rows = [a_view(0, leader, told_by=told_by) for told_by, leader in ((1, 1), (2, 2), (3, 2))]
    assert _leader(rows) == 2
    assert _leader([*rows, a_view(0, 3, told_by=4, leader_epoch=7)]) == 3


def test_what_was_described_long_ago_does_not_count_any_more() -> None:
    """Epochs or not: an election may have come in between."""
    assert _leader([a_view(0, 3, told_by=4, leader_epoch=7, at=NOW - 5 * MINUTE), a_view(0, 1)]) == 1


def _leader(rows: list[PartitionView]) -> int:
    view = build(Observations(partitions=rows), now=NOW)[0].view(rows[0].name)
    assert view is not None
    return view.leader


def test_a_whole_description_tells_how_many_partitions_there_are() -> None:
    """Everything hangs on that number: the group's partition is a hash modulo it."""
    cluster, _ = build(Observations(partitions=an_offsets_topic(17)), now=NOW)
    assert cluster.offsets_partitions == 17


def test_a_piece_of_a_description_does_not() -> None:
    """Somebody pasted the three lines that looked bad; 44 partitions would be a guess."""
    rows = an_offsets_topic(50)[41:44]
    cluster, cases = build(Observations(partitions=rows, known_groups={"g": "a log"}), now=NOW)
    assert cluster.offsets_partitions is None
    assert cases[0].offsets_partition is None


def test_the_head_of_an_output_counts_more_than_its_lines() -> None:
    """Somebody cut it off after the first screen: PartitionCount is what there is."""
    rows = [row._replace(told_by=None) for row in an_offsets_topic(50)[:4]]
    head = Setting("topic __consumer_offsets", "partitions", "50", "topics.txt:1")
    assert build(Observations(partitions=rows, settings=[head]), now=NOW)[0].offsets_partitions == 50
    living = an_offsets_topic(60)
    seen = Observations(partitions=[*rows, *living], settings=[head])
    assert build(seen, now=NOW)[0].offsets_partitions == 60


def test_a_setting_completes_a_piece_of_a_description() -> None:
    """server.properties lies in many incident folders."""
    rows = an_offsets_topic(50)[41:44]
    setting = Setting("broker 1", "offsets.topic.num.partitions", "50", "broker-1.properties")
    cluster, _ = build(Observations(partitions=rows, settings=[setting]), now=NOW)
    assert cluster.offsets_partitions == 50
    assert cluster.setting("offsets.topic.num.partitions") == "50"


def test_a_topic_that_brokers_do_not_know_has_no_partitions() -> None:
    """A row for partition -1 says: there is no such topic."""
    row = PartitionView("__consumer_offsets", -1, -1, (), (), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, told_by=1)
    cluster, _ = build(Observations(partitions=[row]), now=NOW)
    assert cluster.offsets_partitions == 0
    assert not cluster.views


def test_listed_is_known_only_if_those_were_asked_who_would_know() -> None:
    """A group is missing from lists because it is gone, or because its coordinator could not be asked."""
    on_1, on_2 = a_name_on(0), a_name_on(1)
    seen = Observations(
        brokers=[a_broker(1), a_broker(2), a_broker(3, alive=False)],
        partitions=an_offsets_topic(50),
        listings=[Listing(1, ("seen",), at=NOW), Listing(2, (), ErrorCode.COORDINATOR_NOT_AVAILABLE, NOW)],
        known_groups={on_1: "a log", on_2: "a log"},
    )
    assert case_of(seen, "seen").listed is True
    assert case_of(seen, on_1).listed is False
    assert case_of(seen, on_2).listed is None
    seen.listings.append(Listing(2, (), at=NOW))
    assert case_of(seen, on_2).listed is False
    assert case_of(seen, on_2).cluster.listing_complete


def test_while_a_coordinator_moves_nobody_can_say_that_a_group_is_gone() -> None:
    """Seen on real Kafka: seconds after a broker's death its groups were told as deleted or expired."""
    group = a_name_on(0)
    before = [a_view(0, 1, told_by=None, at=NOW - MINUTE, leader_epoch=4)]
    seen = Observations(
        brokers=[a_broker(1), a_broker(2), a_broker(3)],
        partitions=[*before, a_view(0, 2, leader_epoch=5), *an_offsets_topic(50)[1:]],
        listings=[Listing(node, (), at=NOW) for node in (1, 2, 3)],
        known_groups={group: "an earlier survey", a_name_on(1): "an earlier survey"},
    )
    assert case_of(seen, group).listed is None
    assert case_of(seen, a_name_on(1)).listed is False


def test_0_9_lists_no_group_without_members_so_nothing_follows_from_it() -> None:
    """Such a group would seem to be deleted whenever its consumers are down."""
    seen = Observations(
        brokers=[a_broker(1, release="0.9")],
        partitions=an_offsets_topic(50, brokers=(1,), replicas=1),
        listings=[Listing(1, (), at=NOW)],
        known_groups={"billing": "an earlier survey"},
    )
    assert case_of(seen).listed is None


def test_what_is_said_of_brokers_belongs_to_the_cluster() -> None:
    """And what is said of a group belongs to that group."""
    fenced = an_event(EventKind.BROKER_FENCED, group=None, node=2)
    joined = an_event(EventKind.JOINED)
    forbidden = Unasked("group", "billing", "not authorised")
    dead = Unasked("broker", "2", "connection refused")
    case = case_of(Observations(events=[fenced, joined], unasked=[forbidden, dead]))
    assert (case.events, case.cluster.events) == ((joined,), (fenced,))
    assert (case.unasked, case.cluster.unasked) == ((forbidden,), (dead,))


def test_without_a_clock_now_is_the_end_of_what_was_seen() -> None:
    """In files, last month is now."""
    seen = Observations(ends=[an_end(5, at=NOW - MINUTE)], commits=[Commit("g", "t", 0, 1, NOW - 2 * MINUTE)])
    assert build(seen)[0].now == NOW - MINUTE
    assert build(Observations())[0].now == 0


def test_known_from_names_files_without_lines() -> None:
    """One line for each file is enough to find it."""
    rows = [an_event(EventKind.JOINED, source=f"clients/app.log:{line}") for line in (3, 4)]
    assert case_of(Observations(events=rows)).known_from == ("clients/app.log",)


def test_groups_of_a_probe_are_left_out_unless_they_are_named() -> None:
    """Every probe leaves records of a group that nobody consumes with; the doctor told of each of them."""
    scratch, lookalike = "kelpie-probe-0a1b2c3d-17", "kelpie-probe-mine"
    rows = Observations(known_groups={scratch: "a log", lookalike: "a log", "billing": "a log"})
    assert [case.group for case in build(rows)[1]] == ["billing", lookalike]
    assert [case.group for case in build(rows, groups=[scratch])[1]] == [scratch]
