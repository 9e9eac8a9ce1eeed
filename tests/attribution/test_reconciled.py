"""Plan 3 compares listings with members. Half a listing, or another broker's groups, are no reason to act."""

from kelpie.attribution.addresses import KOP_ROOT, ClientAddress
from kelpie.attribution.plan import Removal
from kelpie.attribution.reconciled import ReconciledPlan
from kelpie.attribution.requests import Delete, Put
from tests.attribution.cluster import P0, P1, Cluster

NODE = f"{KOP_ROOT}/10.0.0.7-app"
NESTED = ClientAddress("10.0.0.7", "team/app")


def test_missing_mappings_are_written_again_also_nested_ones() -> None:
    """A client id with "/" lies deeper than one listing reaches."""
    cluster = Cluster("reconciled")
    cluster.consumer("g", P0)
    cluster.consumer("h", P1, client=NESTED)
    before = cluster.nodes(KOP_ROOT)
    for path in (NODE, f"{KOP_ROOT}/10.0.0.7-team/app"):
        cluster.store.carry_out(Delete(9, path))
    cluster.wait(70)
    assert cluster.nodes(KOP_ROOT) == before
    coordinator = cluster.brokers[2]
    assert isinstance(coordinator, ReconciledPlan)
    assert coordinator.counts.created == 2


def test_a_group_of_another_broker_is_left_alone() -> None:
    """This coordinator does not know that group's members."""
    cluster = Cluster("reconciled")
    cluster.consumer("g", P0)
    cluster.store.carry_out(Put(9, f"{KOP_ROOT}/10.0.0.8-other", b"elsewhere"))
    cluster.store.carry_out(Put(9, NODE, b"elsewhere"))
    cluster.wait(400)
    assert set(cluster.nodes(KOP_ROOT).values()) == {b"elsewhere"}


def test_a_leaked_mapping_is_deleted_after_the_grace_time_only() -> None:
    """A member that was just removed may be about to join again."""
    cluster = Cluster("reconciled")
    cluster.consumer("g", P0)
    cluster.remove(2, "g", "g-m", Removal.NOT_REJOINED)
    cluster.wait(130)
    assert NODE in cluster.nodes(KOP_ROOT)
    cluster.wait(70)
    assert NODE not in cluster.nodes(KOP_ROOT)


def test_a_listing_that_failed_halfway_changes_nothing() -> None:
    """What was not read would look missing."""
    cluster = Cluster("reconciled")
    cluster.consumer("g", P0)
    cluster.consumer("h", P1, client=NESTED)
    before = cluster.nodes(KOP_ROOT)
    cluster.delay(2)
    cluster.wait(61)
    assert len(cluster.delayed[2]) == 2
    cluster.fail(2)
    assert cluster.nodes(KOP_ROOT) == before
    cluster.wait(61)
    assert cluster.nodes(KOP_ROOT) == before


def test_a_listing_that_is_old_brings_a_mapping_back() -> None:
    """Plan 3's own fault: the member leaves between listing and repair. The leak ends with the grace time."""
    cluster = Cluster("reconciled")
    cluster.consumer("g", P0)
    cluster.store.carry_out(Delete(9, NODE))
    coordinator = cluster.brokers[2]
    cluster.wait(60)
    cluster.now += 1_000
    (listing,) = coordinator.tick(cluster.now)
    repair = coordinator.answered(listing, cluster.store.carry_out(listing), cluster.now)
    cluster.remove(2, "g", "g-m", Removal.LEFT)
    cluster.send(2, repair)
    assert NODE in cluster.nodes(KOP_ROOT)
    cluster.wait(200)
    assert NODE not in cluster.nodes(KOP_ROOT)
