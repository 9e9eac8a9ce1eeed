"""KLP101: the partition that holds the group has no leader."""

from dataclasses import replace

from kelpie.cluster import ClusterView, Outage
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.offsets_partition_leaderless import judge, judge_rest
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, EventKind, PartitionView
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_name_on,
    a_view,
    an_answer,
    an_event,
    an_offsets_topic,
    events,
    found,
    missing,
)

HIT, WELL = a_name_on(43), a_name_on(44)
UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_partition_without_a_leader_takes_the_coordinator_from_its_groups() -> None:
    """The incident that this rule is for: some groups consume nothing, and no error says so."""
    cluster = a_cluster(*an_offsets_topic(p43=-1), dead=(2, 3))
    finding = found(judge(a_case(HIT, cluster, listed=False)))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        f"Group {HIT} has no coordinator: __consumer_offsets-43 has no leader; its replicas are on "
        "brokers 2 and 3."
    )
    assert finding.cause == "__consumer_offsets-43"
    assert finding.brokers == (2, 3)
    assert [it.text for it in finding.evidence] == [
        "__consumer_offsets-43: leader none, replicas 2 and 3, in sync none",
        "broker 2 (kafka-2:9092) is dead: connection refused",
        "broker 3 (kafka-3:9092) is dead: connection refused",
        "no broker lists the group any more",
    ]
    assert [it.command for it in finding.remedies] == [
        "",
        f"kelpie rehome -b kafka-1:9092 {HIT}",
        "kelpie elect -b kafka-1:9092 __consumer_offsets-43 --unclean",
    ]


def test_a_group_on_another_partition_is_well() -> None:
    """Near miss: the same cluster, a name that hashes one further."""
    assert judge(a_case(WELL, a_cluster(*an_offsets_topic(p43=-1)))) is ABSENT


def test_a_leader_that_is_dead_is_none() -> None:
    """Kafka 0.9 goes on naming it, with a full ISR."""
    cluster = a_cluster(*an_offsets_topic(), dead=(2, 3))
    assert "is led by broker 2, which is dead" in found(judge(a_case(HIT, cluster))).summary


def test_a_living_leader_with_a_dead_follower_will_do() -> None:
    """Near miss: a replica is lost and the group is served."""
    assert judge(a_case(HIT, a_cluster(dead=(3,)))) is ABSENT


def test_who_may_lead_is_who_to_start() -> None:
    """A replica that was behind is not elected, however much one starts it."""
    rows = an_offsets_topic()

    def advice(view: PartitionView) -> str:
        cluster = a_cluster(*rows[:43], view, *rows[44:], dead=(2, 3))
        return found(judge(a_case(HIT, cluster))).remedies[0].text

    assert advice(a_view(43, -1, (2, 3), eligible=(2,))) == (
        "Start broker 2: it may lead, and nothing is lost. Broker 3 alone would not be elected."
    )
    assert advice(a_view(43, 2, (2, 3), (2, 3))) == (
        "Start broker 2 or 3: each may lead, and nothing is lost."
    )
    assert advice(a_view(43, 2, (2, 3), (2,))) == (
        "Start broker 2: it may lead, and nothing is lost. Broker 3 alone would not be elected."
    )
    assert advice(a_view(43, -1, (2, 3))) == (
        "Start brokers 2 and 3: the one that was in sync last leads again."
    )


def test_a_log_directory_that_is_offline_is_no_dead_broker() -> None:
    """The only replica in sync is on a broker that runs: to start the other one helps nobody."""
    rows = an_offsets_topic()
    view = a_view(43, -1, (1, 3), (1,), offline=(1, 3))
    cluster = a_cluster(*rows[:43], view, *rows[44:], dead=(3,))
    texts = [remedy.text for remedy in found(judge(a_case(HIT, cluster))).remedies]
    assert texts[0].startswith("Broker 1 runs, but the log directory with this partition is offline there.")
    assert not any(text.startswith("Start broker 3") for text in texts)


def test_where_unclean_elections_are_allowed_the_order_of_starts_matters() -> None:
    """Whoever starts the wrong broker first loses records, without having asked for an election."""
    rows = an_offsets_topic()
    view = a_view(43, -1, (2, 3), (2,))
    settings = {("topic __consumer_offsets", "unclean.leader.election.enable"): "true"}
    cluster = replace(a_cluster(*rows[:43], view, *rows[44:], dead=(2, 3)), settings=settings)
    texts = [remedy.text for remedy in found(judge(a_case(HIT, cluster))).remedies]
    assert texts[0] == "Start broker 2: it may lead, and nothing is lost."
    assert "broker 3 is elected as soon as it runs, and records that it lacks are lost" in texts[1]


def test_names_are_quoted_for_the_shell() -> None:
    """Kafka takes any name; a command with it must do nothing else."""
    group = a_name_on(43, prefix="$(reboot) ")
    finding = found(judge(a_case(group, a_cluster(*an_offsets_topic(p43=-1)))))
    assert finding.remedies[-2].command == f"kelpie rehome -b kafka-1:9092 '{group}'"


def test_the_outage_began_when_the_last_replica_went() -> None:
    """And not when the first one did: until then the other one led."""
    outages = {2: (Outage(2, NOW - 2 * MINUTE),), 3: (Outage(3, NOW - MINUTE),)}
    cluster = a_cluster(*an_offsets_topic(p43=-1), dead=(2, 3), outages=outages)
    assert found(judge(a_case(HIT, cluster))).since == NOW - MINUTE


def test_without_a_number_of_partitions_nobody_knows_where_the_group_lives() -> None:
    """Too little data is not the same as all is well."""
    cluster = ClusterView(NOW)
    assert missing(judge(a_case(HIT, cluster))) == ("the number of partitions of __consumer_offsets",)


def test_without_a_view_the_leader_is_not_known() -> None:
    """The partition is known, and nobody described it."""
    cluster = a_cluster(a_view(0, 1))
    assert missing(judge(a_case(HIT, cluster))) == ("the leader of __consumer_offsets-43",)


def test_a_leader_that_may_be_dead_leaves_it_open() -> None:
    """Listed as alive by others and not reachable from here: KLP105 speaks."""
    case = a_case(HIT, a_cluster(unknown=(2,)))
    assert missing(judge(case)) == ("whether broker 2, the leader of __consumer_offsets-43, is alive",)


def test_error_15_from_all_brokers_is_as_good_as_metadata() -> None:
    """0.9 in its worst days gives no metadata, and still answers that there is no coordinator."""
    cluster = ClusterView(NOW)
    answers = [an_answer(UNAVAILABLE, told_by=1), an_answer(UNAVAILABLE, told_by=2)]
    assert found(judge(a_case(HIT, cluster, answers=answers))).evidence[0].source == "broker 1"
    answers.append(an_answer(told_by=3, node_id=1))
    assert judge(a_case(HIT, cluster, answers=answers)) is ABSENT


def test_clients_that_hear_error_15_again_and_again_are_believed() -> None:
    """The log of one consumer may be all there is."""
    cluster = ClusterView(NOW)
    told = events(EventKind.LOOKUP_FAILED, NOW - MINUTE, NOW, group=HIT, error=15)
    finding = found(judge(a_case(HIT, cluster, events=told)))
    assert finding.since == NOW - MINUTE
    assert finding.evidence[-1].text == "2 such lines until then"
    assert not finding.partitions


def test_clients_that_found_it_in_the_end_are_believed_too() -> None:
    """Near miss: the first lookup of all creates the topic and hears error 15 for a second."""
    told = events(EventKind.LOOKUP_FAILED, NOW - MINUTE, NOW - SECOND, group=HIT, error=15)
    told.append(an_event(EventKind.COORDINATOR_FOUND, group=HIT, node=1))
    assert judge(a_case(HIT, ClusterView(NOW), events=told)) is ABSENT


def test_an_outage_that_is_over_is_told_with_its_end() -> None:
    """Who asks in the morning why the night's reports are late gets an answer."""
    outages = {
        2: (Outage(2, NOW - 9 * MINUTE, NOW - 4 * MINUTE),),
        3: (Outage(3, NOW - 8 * MINUTE, NOW - 5 * MINUTE, text="Fencing broker 3"),),
    }
    finding = found(judge(a_case(HIT, a_cluster(outages=outages))))
    assert finding.severity is Severity.NOTICE
    assert (finding.since, finding.until) == (NOW - 8 * MINUTE, NOW - 5 * MINUTE)
    assert "(3 min)" in finding.summary
    assert finding.evidence[0].text == "Fencing broker 3"


def test_outages_one_after_the_other_took_no_coordinator_away() -> None:
    """Near miss: a rolling restart."""
    outages = {
        2: (Outage(2, NOW - 9 * MINUTE, NOW - 8 * MINUTE),),
        3: (Outage(3, NOW - 7 * MINUTE, NOW - 5 * MINUTE),),
    }
    assert judge(a_case(HIT, a_cluster(outages=outages))) is ABSENT


def test_a_broker_that_was_found_dead_today_was_not_away_last_week() -> None:
    """Near miss: nobody saw it go, and the other one was restarted long before."""
    outages = {
        2: (Outage(2, NOW - 9 * MINUTE, NOW - 8 * MINUTE),),
        3: (Outage(3, None, NOW - SECOND, seen=NOW - MINUTE),),
    }
    assert judge(a_case(HIT, a_cluster(outages=outages))) is ABSENT


def test_of_two_outages_that_are_over_the_last_one_is_told() -> None:
    """Between them there was a leader."""
    partition = TopicPartition(OFFSETS_TOPIC, 43)
    seen = [(-1, 9), (2, 7), (-1, 4), (3, 2)]
    views = tuple(a_view(43, leader, (2, 3), at=NOW - ago * MINUTE) for leader, ago in seen)
    finding = found(judge(a_case(HIT, a_cluster(earlier_views={partition: views}))))
    assert (finding.since, finding.until) == (NOW - 4 * MINUTE, NOW - 2 * MINUTE)


def test_an_earlier_description_without_a_leader_tells_of_an_outage_too() -> None:
    """Two outputs of kafka-topics, one from the night and one from now."""
    partition = TopicPartition(OFFSETS_TOPIC, 43)
    night = {partition: (a_view(43, -1, (2, 3), at=NOW - MINUTE),)}
    finding = found(judge(a_case(HIT, a_cluster(earlier_views=night))))
    assert (finding.since, finding.until) == (NOW - MINUTE, NOW)


def test_partitions_without_a_leader_are_named_where_no_group_is_known() -> None:
    """Nobody lists the groups of a partition without a leader: silence is no good news."""
    cluster = a_cluster(*an_offsets_topic(p43=-1))
    finding = found(judge_rest(cluster, [a_case(WELL, cluster)]))
    assert (finding.severity, finding.group) == (Severity.CRITICAL, None)
    assert finding.summary.startswith("1 of 50 partitions of __consumer_offsets has no leader: 43.")
    assert finding.remedies[0].text == "Start the brokers that hold their replicas."
    half = a_cluster(*an_offsets_topic(p43=-1), dead=(2, 3))
    assert found(judge_rest(half, [])).remedies[0].text == "Start brokers 2 and 3."


def test_where_a_group_is_known_its_own_finding_tells() -> None:
    """Also where somebody asks for other groups by name: their neighbours' trouble is not theirs."""
    cluster = a_cluster(*an_offsets_topic(p43=-1), dead=(2, 3))
    assert judge_rest(cluster, [a_case(HIT, cluster)]) is ABSENT
    some = replace(cluster, all_groups=False)
    assert judge_rest(some, [a_case(WELL, some)]) is ABSENT
    assert judge_rest(a_cluster(), []) is ABSENT


def test_an_election_with_nobody_to_elect_needs_a_start_first() -> None:
    """The command alone would be refused."""
    cluster = a_cluster(*an_offsets_topic(p43=-1), dead=(2, 3))
    last = found(judge(a_case(HIT, cluster))).remedies[-1]
    assert last.text.startswith("Last resort: with one of its replicas started, elect")
    half = a_cluster(*an_offsets_topic(p43=-1), dead=(3,))
    assert found(judge(a_case(HIT, half))).remedies[-1].text.startswith("Last resort: elect")
