"""Two real outages, from their files alone: the rows that a diagnosis needs are there, and right."""

from collections import Counter
from functools import cache

from kelpie.errors import ErrorCode
from kelpie.evidence import read_evidence
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, Event, Observations
from kelpie.observations import EventKind as Kind
from tests.evidence import Observation, truth, unpacked

NEW, OLD = "kafka-4.3.1-coordinator-outage", "kafka-0.9.0.1-coordinator-outage"
KILLED = 1794776295000
"""Kafka 4.3.1: brokers 2 and 3 were killed at 20:58:15."""


@cache
def _seen(name: str) -> Observations:
    return read_evidence([unpacked(name)])


def _groups(name: str) -> dict[str, list[str]]:
    """Group → its line in the truth: group, offsets partition, hit or not …"""
    rows = (truth(name) / "groups.txt").read_text().splitlines()
    return {row.split()[0]: row.split() for row in rows if not row.startswith("#")}


def _hit(name: str) -> set[str]:
    return {group for group, row in _groups(name).items() if row[2] == "hit"}


def _events(name: str, group: str | None, *kinds: Kind) -> list[Event]:
    return [row for row in _seen(name).events if row.group == group and row.kind in kinds]


def _leaderless(seen: Observations, after: int) -> set[int]:
    return {
        row.partition
        for row in seen.partitions
        if row.topic == OFFSETS_TOPIC and row.leader < 0 and (row.at or 0) > after
    }


def test_of_kafka_4_everything_is_read_that_can_be() -> None:
    """The count of rows, as a whole: a reader that loses some must be seen."""
    seen = _seen(NEW)
    assert len(seen.partitions) == 2 * 69
    assert (len(seen.commits), len(seen.generations), len(seen.removals)) == (1227, 75, 5)
    assert (len(seen.committed), len(seen.listings), len(seen.answers), len(seen.states)) == (114, 2, 1, 19)
    assert {row.name for row in seen.unasked} == {
        "clients/console-consumer-counts.txt",
        "commands/before-quorum.txt",
        "commands/delete-offsets.txt",
        "commands/reset-offsets.txt",
    }
    assert set(seen.known_groups) == set(_groups(NEW))
    assert {row.node_id: row.release for row in seen.brokers if row.release} == dict.fromkeys(
        (1, 2, 3), "4.3.1"
    )
    assert {row.at is not None for row in seen.events} == {True}
    client_events = [row for row in seen.events if ":" not in row.kind.value]
    assert {row.group for row in client_events} == set(_groups(NEW)) | {None}
    assert {row.source.partition("/")[0] for row in client_events if row.group is None} == {"commands"}


def test_of_kafka_0_9_everything_is_read_that_can_be() -> None:
    """Times of day without a date, magic 0, commas between columns: the oldest of all."""
    seen = _seen(OLD)
    assert len(seen.partitions) == 2 * 56
    assert (len(seen.commits), len(seen.generations), len(seen.removals)) == (540, 5, 4)
    assert (len(seen.committed), len(seen.answers)) == (2, 2)
    assert seen.unasked == []
    assert set(seen.known_groups) == {"billing-0", "billing-1", "billing-5", "warmup"}
    assert {row.at is not None for row in seen.events} == {True}
    assert {row.node_id: row.address for row in seen.brokers if row.host} == {
        node: f"127.0.0.1:1909{node}" for node in (0, 1, 2)
    }


def test_outputs_are_dated_on_the_right_side_of_the_outage() -> None:
    """No output has a time, and all files have the same: what they show must tell."""
    for name, killed, end in ((NEW, KILLED, 1794776380000), (OLD, 1794767109246, 1794767679000)):
        seen = _seen(name)
        rows: list[Observation] = [
            *seen.partitions,
            *seen.committed,
            *seen.states,
            *seen.listings,
            *seen.answers,
        ]
        for row in rows:
            file = row.source.rpartition("/")[2]
            assert row.at is not None
            during = file.startswith("during") or "during" in file or "describe-group" in file
            assert (killed <= row.at <= end) if during else (row.at < killed), row


def test_the_leaderless_partitions_of_kafka_4_are_those_of_the_hit_groups() -> None:
    """The group's name says where it lives; the describe output says that nobody leads there."""
    leaderless = _leaderless(_seen(NEW), KILLED)
    assert len(leaderless) == 17
    assert {group for group in _groups(NEW) if partition_for(group, 50) in leaderless} == _hit(NEW)
    assert _leaderless(_seen(NEW), 0) == leaderless


def test_the_dead_leaders_of_kafka_0_9_are_named_by_the_controller() -> None:
    """Its describe output goes on naming them, with full ISR; who is dead is in the controller's log."""
    seen = _seen(OLD)
    dead = {row.node for row in seen.events if row.kind is Kind.BROKER_FENCED}
    assert dead == {1, 2}
    during = [row for row in seen.partitions if "during" in row.source and row.topic == OFFSETS_TOPIC]
    ruled_by_dead = {row.partition for row in during if row.leader in dead}
    assert all(len(row.in_sync) == 2 for row in during if row.leader in dead)
    assert {group for group in _groups(OLD) if partition_for(group, 50) in ruled_by_dead} == _hit(OLD)
    without = {row.partition for row in seen.events if row.kind is Kind.LEADER_CHANGED and row.node == -1}
    assert ruled_by_dead <= without


def test_clients_of_hit_groups_look_for_their_coordinator_in_vain() -> None:
    """Each client says it in its own words; error 15 is the same."""
    for name, start in ((NEW, KILLED + 15_000), (OLD, 1794767109246)):
        seen = _seen(name)
        failing = {
            row.group
            for row in seen.events
            if row.kind is Kind.LOOKUP_FAILED and row.error == 15 and (row.at or 0) > start
        }
        found = {
            row.group for row in seen.events if row.kind is Kind.COORDINATOR_FOUND and (row.at or 0) > start
        }
        assert failing - found == _hit(name)


def test_kafkas_own_tools_leave_the_hit_groups_out() -> None:
    """Listed before and not listed now: the difference is the outage."""
    before, during = _seen(NEW).listings
    assert set(before.groups) - set(during.groups) == _hit(NEW) - {"checkout-213"}
    (answer,) = _seen(NEW).answers
    assert (answer.group, answer.asked, answer.at) == ("checkout-293", "FindCoordinator", 1794776373922)
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert {(row.group, row.error) for row in _seen(OLD).answers} == {
        ("billing-1", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("billing-5", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    }


def test_the_controller_of_kafka_4_tells_who_was_lost_when() -> None:
    """Nine seconds after the kill, when the sessions had timed out."""
    fenced = {row.node: row.at for row in _seen(NEW).events if row.kind is Kind.BROKER_FENCED}
    assert set(fenced) == {2, 3}
    assert all(KILLED < (at or 0) < KILLED + 15_000 for at in fenced.values())


def test_the_storm_can_be_counted() -> None:
    """checkout-344: a member restarted every two seconds, so generations follow each other."""
    before = [row for row in _seen(NEW).generations if row.group == "checkout-344" and (row.at or 0) < KILLED]
    assert len(before) == 23
    started = _events(NEW, "checkout-344", Kind.REBALANCE_STARTED)
    assert len(started) == 27
    assert sum("LeaveGroup" in row.reason for row in started) >= 15
    others = Counter(row.group for row in _seen(NEW).generations if (row.at or 0) < KILLED)
    assert all(count <= 8 for group, count in others.items() if group != "checkout-344")


def test_slow_pollers_are_told_with_limit_and_pause() -> None:
    """Both slept for 15 seconds, twice, with a limit of eight: Java and librdkafka say it differently."""
    for group in ("checkout-130", "checkout-126"):
        late = _events(NEW, group, Kind.POLL_INTERVAL_EXCEEDED)
        assert [row.details["limit_ms"] for row in late] == ["8000", "8000"]
        assert all(13_500 < int(row.details["pause_ms"]) < 15_500 for row in late)
    assert {row.group for row in _seen(NEW).events if row.kind is Kind.POLL_INTERVAL_EXCEEDED} == {
        "checkout-130",
        "checkout-126",
    }


def test_the_rewind_is_in_the_commits() -> None:
    """checkout-53: the last commit of each partition is zero, without member, after higher ones."""
    commits = [row for row in _seen(NEW).commits if row.group == "checkout-53"]
    by_partition: dict[int, list[int]] = {}
    for row in commits:
        by_partition.setdefault(row.partition, []).append(row.offset)
    assert {partition: offsets[-1] for partition, offsets in by_partition.items()} == dict.fromkeys(
        range(6), 0
    )
    assert all(offsets[-2] > 300 for offsets in by_partition.values())


def test_the_deleted_group_is_told_by_record_log_and_tool() -> None:
    """checkout-213: three witnesses for one deletion, within the same second."""
    seen = _seen(NEW)
    removals = [row for row in seen.removals if row.group == "checkout-213"]
    assert {row.source.partition("/")[0] for row in removals} == {"segments", "commands"}
    (event,) = _events(NEW, "checkout-213", Kind.GROUP_REMOVED)
    assert (event.reason, event.details["offsets"]) == ("deleted", "9")
    witnesses: list[Observation] = [*removals, event]
    assert {(row.at or 0) // 1000 for row in witnesses} == {1794776263}
    removed = [row for row in seen.commits if row.group == "checkout-213" and row.removed]
    assert len(removed) == 9


def test_aborted_offsets_are_not_there() -> None:
    """checkout-251 committed 100, 110, 120 and aborted 300, 310, 320."""
    transactional = [row for row in _seen(NEW).commits if row.group == "checkout-251" and row.transactional]
    assert [(row.partition, row.offset) for row in transactional] == [(0, 100), (1, 110), (2, 120)]


def test_a_group_of_the_new_protocol_has_generations_with_topics_by_name() -> None:
    """Its records name topics by id only; the rest of the evidence knows the name."""
    (row,) = [row for row in _seen(NEW).generations if row.group == "checkout-216"]
    (member,) = row.members
    assert (row.generation, member.epoch, member.subscribed) == (2, 2, ("payments",))
    assert [str(name) for name in member.assigned or ()] == ["payments-0", "payments-1", "payments-2"]


def test_settings_of_consumers_and_brokers_are_known() -> None:
    """Dumped into logs at the start: what the rules compare with."""
    settings = {(row.of, row.name): row.value for row in reversed(_seen(NEW).settings)}
    assert settings["group checkout-130", "max.poll.interval.ms"] == "8000"
    assert settings["group checkout-293", "auto.offset.reset"] == "earliest"
    assert settings["broker", "offsets.topic.num.partitions"] == "50"
    assert settings["broker 2", "group.initial.rebalance.delay.ms"] == "500"
    assert settings["topic __consumer_offsets", "cleanup.policy"] == "compact"
    assert not any("password" in name or "jaas" in name for _, name in settings)
