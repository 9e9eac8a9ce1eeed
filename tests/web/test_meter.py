"""What is kept from look to look: numbers that a look could not see, and what only grows."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kelpie.client import SyncAdmin
from kelpie.client.settings import Settings
from kelpie.examination import Examination
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import EventKind, Generation, Listing, Observations
from kelpie.web.meter import Meter
from kelpie.web.watch import Watch
from tests.doctor.building import (
    MINUTE,
    NOW,
    a_broker,
    a_member,
    a_view,
    an_event,
    an_offsets_topic,
    commits,
)
from tests.web.looks import a_healthy_cluster, a_look
from tests.web.scraping import scraped
from tests.web.watching import client, looked

ORDERS = TopicPartition("orders", 0)


def test_a_group_whose_coordinator_is_dead_keeps_its_numbers_and_says_how_old_they_are() -> None:
    meter = Meter()
    meter.take(a_look(a_healthy_cluster("billing"), NOW))
    home = partition_for("billing", 50)
    later = NOW + MINUTE
    views = [row if row.partition != home else a_view(home, -1) for row in an_offsets_topic()]
    rows = Observations(
        brokers=[a_broker(node) for node in (1, 2, 3)],
        partitions=[*views, a_view(0, 1, topic="orders")],
        listings=[Listing(node, (), at=later, source=f"broker {node}") for node in (1, 2, 3)],
    )
    group = meter.take(a_look(rows, later)).groups["billing"]
    assert (group.row.members, group.row.lag, group.partitions[0].offset) == (1, 7, 5)
    assert group.seen == NOW, "the numbers are of the look before"
    assert not group.row.state, "what it is now, nobody can say"


def test_a_group_that_brokers_no_longer_list_has_no_numbers_any_more() -> None:
    """Its partition of the offsets topic has a leader, and nobody lists the group: it was deleted."""
    meter = Meter()
    meter.take(a_look(a_healthy_cluster("billing", "audit")))
    numbers = meter.take(a_look(a_healthy_cluster("audit"), NOW + MINUTE))
    assert list(numbers.groups) == ["audit"]
    assert "billing" not in numbers.totals.commits


def test_a_partition_without_a_leader_keeps_its_lag_and_its_end() -> None:
    meter = Meter()
    meter.take(a_look(a_healthy_cluster("billing")))
    rows = replace(a_healthy_cluster("billing", at=NOW + MINUTE), ends=[])
    rows.partitions = [*an_offsets_topic(), a_view(0, -1, topic="orders")]
    numbers = meter.take(a_look(rows, NOW + MINUTE))
    assert numbers.groups["billing"].partitions[0].lag == 7
    assert numbers.groups["billing"].seen == NOW
    assert numbers.ends[ORDERS].latest == 12


def test_a_cluster_that_does_not_answer_keeps_all_numbers_but_that_one() -> None:
    meter = Meter()
    before = meter.take(a_look(a_healthy_cluster("billing")))
    numbers = meter.take(a_look(Observations(), NOW + MINUTE))
    assert not numbers.answers
    assert numbers.cluster is before.cluster
    assert numbers.groups["billing"].partitions == before.groups["billing"].partitions
    assert numbers.groups["billing"].row.members == 1
    assert numbers.groups["billing"].seen == NOW


def test_what_was_never_committed_is_not_missing() -> None:
    """A member waits in a partition of which nothing is committed: no look will ever see a lag there."""
    rows = replace(a_healthy_cluster("billing"), committed=[])
    meter = Meter()
    for at in (NOW, NOW + MINUTE):
        numbers = meter.take(a_look(rows, at))
    assert numbers.groups["billing"].seen == NOW + MINUTE


def test_commits_count_once_however_often_they_are_read() -> None:
    """The ends of the offsets topic that two looks read overlap."""
    first = commits((NOW - 3000, 3), (NOW - 2000, 4), (NOW - 1000, 5))
    meter = Meter()
    meter.take(a_look(a_healthy_cluster("billing", commits=first)))
    again = [*first[1:], *commits((NOW + 1000, 6), (NOW + 2000, 7))]
    numbers = meter.take(a_look(a_healthy_cluster("billing", offset=7, commits=again), NOW + MINUTE))
    assert numbers.totals.commits == {"billing": 5}
    numbers = meter.take(a_look(a_healthy_cluster("billing", offset=7, commits=again), NOW + 2 * MINUTE))
    assert numbers.totals.commits == {"billing": 5}
    assert numbers.totals.records == 5


def test_without_a_history_offsets_that_change_are_commits() -> None:
    meter = Meter()
    meter.take(a_look(a_healthy_cluster("billing", offset=5)))
    numbers = meter.take(a_look(a_healthy_cluster("billing", offset=6), NOW + MINUTE))
    assert numbers.totals.commits == {"billing": 1}


def _a_generation(number: int, *members: str, at: int) -> Generation:
    return Generation(
        "billing", number, tuple(a_member(name) for name in members), "consumer", "range", at=at
    )


@pytest.mark.parametrize(
    ("members", "cause"),
    [
        (("a", "b"), "joined"),
        (("a", "b", "c"), "joined"),
        ((), "emptied"),
        (("b",), "replaced"),
        (("a",), "same-members"),
    ],
)
def test_rebalances_are_counted_by_what_changed(members: tuple[str, ...], cause: str) -> None:
    first = [_a_generation(7, "a", at=NOW - 3000)]
    meter = Meter()
    numbers = meter.take(a_look(a_healthy_cluster("billing", generations=first)))
    assert not any(numbers.totals.rebalances["billing"].values()), "what was before generation 7 is not known"
    second = [*first, _a_generation(8, *members, at=NOW + 1000)]
    for at in (NOW + MINUTE, NOW + 2 * MINUTE):
        numbers = meter.take(a_look(a_healthy_cluster("billing", generations=second), at))
        assert numbers.totals.rebalances["billing"] == {cause: 1}


def test_a_session_that_ended_is_a_cause_of_its_own() -> None:
    """Only the coordinator's log tells it from a member that left."""
    joined = EventKind.GENERATION_JOINED
    rows = a_healthy_cluster("billing")
    rows.events = [
        an_event(joined, NOW - 3000, generation=1),
        an_event(EventKind.MEMBER_EXPIRED, NOW - 2000, member="app-2"),
        an_event(joined, NOW - 1000, generation=2),
    ]
    numbers = Meter().take(a_look(rows))
    assert numbers.totals.rebalances["billing"] == {"same-members": 1, "expired": 1}


def test_series_stay_when_a_broker_dies(wait_until: Callable[..., None]) -> None:
    """The same on a living cluster, without a store that would remember the group."""
    with SyncCluster(2, offsets_partitions=2, replication=1) as cluster:
        cluster.create_topic("orders", partitions=1, replication=2)
        names = {partition_for(name, 2): name for name in ("billing-1", "billing-2", "billing-3")}
        assert len(names) == 2
        settings = replace(Settings.of(cluster.bootstrap_servers), request_timeout_s=1, connect_timeout_s=1)
        with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
            for name in names.values():
                admin.commit(name, {ORDERS: 0})
        with Watch("lab", Examination(settings), 0.05) as watch, client([watch]) as browser:
            looked(watch)

            def values(metric: str) -> dict[str, float]:
                return {labels["group"]: value for labels, value in scraped(browser)[metric]}

            wait_until(lambda: set(values("kelpie_group_lag")) == set(names.values()))
            coordinators = values("kelpie_group_coordinator")
            (hit,) = [name for name, node in coordinators.items() if node == 2]
            (spared,) = set(names.values()) - {hit}
            cluster.kill(2)
            wait_until(lambda: values("kelpie_group_coordinator")[hit] == -1)
            wait_until(lambda: values("kelpie_group_stale_seconds")[hit] > 0)
            for metric in ("kelpie_group_lag", "kelpie_group_members", "kelpie_group_partition_offset"):
                assert set(values(metric)) == {hit, spared}, metric
            assert values("kelpie_group_stale_seconds")[spared] == 0
            states = {
                labels["group"]: labels["state"] for labels, _ in scraped(browser)["kelpie_group_state"]
            }
            assert states == {hit: "Unknown", spared: "Empty"}


def test_sizes_of_log_directories_are_asked_for_when_they_are_wanted(wait_until: Callable[..., None]) -> None:
    with SyncCluster(2, offsets_partitions=2) as cluster:
        cluster.create_topic("orders", partitions=1)
        with SyncAdmin(cluster.bootstrap_servers, patience_s=30) as admin:
            admin.commit("billing", {ORDERS: 0})
        settings = Settings.of(cluster.bootstrap_servers)
        meter, without = Meter(log_dirs_every_s=0), Meter()
        with (
            Watch("lab", Examination(settings), 0.05, meter=meter),
            Watch("other", Examination(settings), 0.05, meter=without),
        ):
            wait_until(lambda: meter.latest is not None and meter.latest.log_dirs is not None)
            wait_until(lambda: without.latest is not None)
        assert meter.latest is not None
        assert meter.latest.log_dirs is not None
        assert set(meter.latest.log_dirs.by_broker) == {1, 2}
        assert set(meter.latest.log_dirs.by_topic) == {"orders", "__consumer_offsets"}
        assert (
            sum(meter.latest.log_dirs.by_topic.values()) == sum(meter.latest.log_dirs.by_broker.values()) > 0
        )
        assert (bool(meter.latest.cluster.cluster_id), meter.latest.cluster.controller) == (True, 1)
        assert without.latest is not None
        assert without.latest.log_dirs is None
