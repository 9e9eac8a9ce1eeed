"""What would follow if a broker died: told of a cluster that is whole, and of one that is not."""

from kelpie.doctor.broker_loss import broker_losses, needs_of
from kelpie.model.partitioning import partition_for
from tests.doctor.building import a_case, a_cluster, a_committed, a_view, an_offsets_topic

HOME = partition_for("billing", 50)


def test_with_another_replica_in_sync_a_group_only_moves() -> None:
    cluster = a_cluster()
    losses = {loss.node_id: loss for loss in broker_losses(cluster, needs_of([a_case("billing", cluster)]))}
    coordinator = cluster.coordinator_of("billing")
    assert set(losses) == {1, 2, 3}
    assert all(not loss.stopped and not loss.leaderless for loss in losses.values())
    assert [node for node, loss in losses.items() if loss.moved == ("billing",)] == [coordinator]


def test_a_group_stops_with_the_only_replica_in_sync_of_its_offsets_partition() -> None:
    rows = [row for row in an_offsets_topic() if row.partition != HOME]
    cluster = a_cluster(*rows, a_view(HOME, 2, (2, 3), (2,)))
    losses = {loss.node_id: loss for loss in broker_losses(cluster, needs_of([a_case("billing", cluster)]))}
    assert losses[2].stopped == ("billing",)
    assert [name.partition for name in losses[2].leaderless] == [HOME]
    assert not losses[2].moved
    assert not losses[1].stopped
    assert not losses[3].stopped


def test_a_group_stops_with_the_only_replica_in_sync_of_a_partition_that_it_reads() -> None:
    cluster = a_cluster(*an_offsets_topic(), a_view(0, 3, (3, 1), (3,), topic="orders"))
    reads = a_case("billing", cluster, committed=[a_committed(5)])
    other = a_case("shipping", cluster, committed=[a_committed(5, group="shipping", topic="parcels")])
    losses = {loss.node_id: loss for loss in broker_losses(cluster, needs_of([reads, other]))}
    assert losses[3].stopped == ("billing",)


def test_a_dead_broker_has_no_line_and_a_stopped_group_stops_no_more() -> None:
    rows = [row for row in an_offsets_topic() if row.partition != HOME]
    cluster = a_cluster(*rows, a_view(HOME, -1, (2, 3)), dead=[2])
    losses = broker_losses(cluster, needs_of([a_case("billing", cluster)]))
    assert [loss.node_id for loss in losses] == [1, 3]
    assert all("billing" not in (*loss.stopped, *loss.moved) for loss in losses)
