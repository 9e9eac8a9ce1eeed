"""KLP202: a rebalance that does not end."""

from dataclasses import replace
from typing import Any

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.rebalance_stuck import judge
from kelpie.model.names import TopicPartition
from kelpie.observations import EventKind, Generation, GroupState
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_member,
    a_name_on,
    a_state,
    a_view,
    an_event,
    an_offsets_topic,
    found,
    missing,
)

TIMES: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 300_000}
OLD = (a_member("app-1", 0, **TIMES), a_member("app-2", 1, **TIMES))
NEW = a_member("app-3")
LAST = Generation("billing", 4, OLD, "consumer", "range", at=NOW - 10 * MINUTE)


def _looks(*seconds_ago: int, state: str = "PreparingRebalance") -> list[GroupState]:
    return [a_state(state, *OLD, NEW, at=NOW - ago * SECOND) for ago in seconds_ago]


def test_members_that_do_not_rejoin_are_named() -> None:
    """Whoever came since the last generation waits; whoever has said that it rejoins, too."""
    joining = an_event(EventKind.JOINING, NOW - 19 * SECOND, client_id="app-1")
    case = a_case(states=_looks(20, 10, 0), generations=[LAST], events=[joining])
    finding = found(judge(case))
    assert finding.severity is Severity.CRITICAL
    assert "PreparingRebalance for 20 s at least; it waits for app-2 to rejoin." in finding.summary
    assert "waits up to 5 min" in finding.summary
    assert finding.members == ("app-2",)


def test_without_logs_all_old_members_are_suspects() -> None:
    """Nobody else can be missing."""
    case = a_case(states=_looks(20, 0), generations=[LAST])
    assert found(judge(case)).members == ("app-1", "app-2")


def test_the_coordinators_log_tells_it_as_well() -> None:
    """From files alone: a rebalance that began, and of whose end its log knows nothing."""
    began = an_event(EventKind.REBALANCE_STARTED, NOW - 2 * MINUTE, source="broker-1.log:10")
    last = an_event(EventKind.COORDINATOR_LOADED, NOW, group=None, source="broker-1.log:99")
    case = a_case(cluster=a_cluster(events=(last,)), generations=[LAST], events=[began])
    assert "for 2 min at least" in found(judge(case)).summary
    ended = an_event(EventKind.GENERATION_JOINED, NOW - MINUTE, source="broker-1.log:20")
    done = an_event(EventKind.ASSIGNMENT_RECEIVED, NOW - MINUTE, source="broker-1.log:21")
    case = a_case(cluster=a_cluster(events=(last,)), generations=[LAST], events=[began, ended, done])
    assert missing(judge(case))


def test_the_leader_may_be_the_one_who_is_missing() -> None:
    """All have joined, and its assignment does not come."""
    case = a_case(states=_looks(30, 0, state="CompletingRebalance"), generations=[LAST])
    assert "waits for its leader's assignment" in found(judge(case)).summary


def test_a_short_rebalance_is_none() -> None:
    """Members need a heartbeat to hear of it: within a session, nobody is late."""
    assert judge(a_case(states=_looks(8, 0), generations=[LAST])) is ABSENT


def test_a_first_start_is_none() -> None:
    """Members come one after the other, and the coordinator waits a while for each."""
    states = [
        a_state(
            "PreparingRebalance",
            *(a_member(f"app-{n}") for n in range(number)),
            at=NOW - 90_000 + number * 1000,
        )
        for number in (1, 30, 60, 90)
    ]
    assert judge(a_case(states=states)) is ABSENT


def test_the_initial_delay_is_waited_for() -> None:
    """group.initial.rebalance.delay.ms may have been raised on purpose."""
    cluster = a_cluster(settings={("broker", "group.initial.rebalance.delay.ms"): "60000"})
    assert judge(a_case(cluster=cluster, states=_looks(60, 0), generations=[LAST])) is ABSENT


def test_two_rebalances_are_not_one_that_lasts() -> None:
    """A generation in between shows that it moved on."""
    between = Generation("billing", 5, OLD, "consumer", "range", at=NOW - 10 * SECOND)
    case = a_case(states=_looks(20, 0), generations=[LAST, between])
    assert missing(judge(case)) == ("since when it rebalances: a second look, or the log of its coordinator",)


def test_a_group_without_a_coordinator_does_not_rebalance() -> None:
    """What was begun before the outage is KLP101's case."""
    cluster = a_cluster(*an_offsets_topic(p7=-1))
    group = a_name_on(7)
    began = an_event(EventKind.REBALANCE_STARTED, NOW - 2 * MINUTE, group)
    assert judge(a_case(group, cluster, events=[began])) is ABSENT


def test_one_look_is_not_enough() -> None:
    """It may have begun a moment ago."""
    assert missing(judge(a_case(states=_looks(0), generations=[LAST])))
    assert missing(judge(a_case()))
    assert judge(a_case(states=[a_state()])) is ABSENT


def _epochs(*epochs: int, state: str = "Reconciling", kind: str = "consumer") -> list[GroupState]:
    """A group that its coordinator assigns, each minute: orders-1 is to go from app-1 to app-2."""
    target = (TopicPartition("orders", 0),)
    keeper = a_member("app-1", 0, 1, target=target, **TIMES)
    waiting = a_member("app-2", target=(TopicPartition("orders", 1),), epoch=5, **TIMES)
    ago = [(len(epochs) - 1 - at) * MINUTE for at in range(len(epochs))]
    return [
        a_state(state, keeper, waiting, kind=kind, protocol="uniform", epoch=epoch, at=NOW - before)
        for epoch, before in zip(epochs, ago, strict=True)
    ]


def test_a_member_that_does_not_give_up_a_partition_is_named() -> None:
    """With KIP-848 there is no leader: the coordinator waits for one member, and the others read on."""
    finding = found(judge(a_case(states=_epochs(5, 5))))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing does not get to its new assignment: Reconciling in epoch 5 for 1 min at least; app-1 "
        "has not yet given up orders-1. The coordinator removes such a member after 5 min."
    )
    assert finding.members == ("app-1",)
    assert "leader" not in finding.summary + finding.why
    assert finding.check.endswith("--describe --group billing --members")


def test_partitions_that_no_member_has_are_those_that_move() -> None:
    """While a member gives up partitions, real coordinators leave them out of its description."""
    zero, one = TopicPartition("orders", 0), TopicPartition("orders", 1)
    keeper = a_member("app-1", 0, target=(zero,), epoch=4, **TIMES)
    waiting = a_member("app-2", target=(one,), epoch=5, **TIMES)
    states = [
        a_state("Reconciling", keeper, waiting, kind="consumer", epoch=5, at=NOW - ago) for ago in (MINUTE, 0)
    ]
    finding = found(judge(a_case(states=states)))
    assert "app-1 has not yet given up orders-1." in finding.summary
    assert finding.members == ("app-1",)
    alike = [
        state._replace(members=tuple(replace(member, client_id="app") for member in state.members))
        for state in states
    ]
    assert "app (member app-1) has not yet given up orders-1." in found(judge(a_case(states=alike))).summary


def test_another_epoch_is_another_rebalance() -> None:
    """A storm that was seen twice is no rebalance that is stuck."""
    assert missing(judge(a_case(states=_epochs(5, 6))))
    assert found(judge(a_case(states=_epochs(5, 6, 6)))).since == NOW - MINUTE


def test_a_classic_group_is_stuck_only_if_no_generation_came_in_between() -> None:
    """Its description has no generation: without the history of the offsets topic nobody knows."""
    rows = [a_state("PreparingRebalance", *OLD, at=NOW - ago * SECOND) for ago in (60, 0)]
    assert missing(judge(a_case(states=rows))) == (
        "whether it is one and the same rebalance: read access to __consumer_offsets",
    )
    assert found(judge(a_case(states=rows, history_from=NOW - 10 * MINUTE)))
    again = [
        a_state("CompletingRebalance", *OLD, at=NOW - MINUTE),
        a_state("PreparingRebalance", *OLD, at=NOW),
    ]
    assert missing(judge(a_case(states=again, generations=[LAST])))


def test_a_streams_application_whose_topics_are_missing_is_not_ready() -> None:
    """The coordinator assigns nothing until they are there."""
    cluster = a_cluster(*an_offsets_topic(), a_view(0, 1, topic="bills"))
    states = _epochs(1, 1, state="NotReady", kind="streams")
    finding = found(judge(a_case(cluster=cluster, states=states)))
    assert "its topics are not ready: orders is missing" in finding.summary
    assert finding.severity is Severity.CRITICAL
    assert finding.check.startswith("kafka-streams-groups.sh")
