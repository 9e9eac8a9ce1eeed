"""Orders of events that a plan with names of its own must survive, and what it cleans up."""

from kelpie.attribution.addresses import MEMBERS_ROOT, ClientAddress
from kelpie.attribution.plan import AssignedMember, Removal
from kelpie.attribution.requests import Put
from tests.attribution.cluster import APP, P0, P1, Cluster

ADDRESS = f"{MEMBERS_ROOT}/10.0.0.7-app"


def started() -> Cluster:
    cluster = Cluster("incarnation")
    cluster.consumer("g", P0)
    return cluster


def children(cluster: Cluster) -> set[str]:
    return {path.removeprefix(f"{ADDRESS}/") for path in cluster.nodes(ADDRESS)}


def test_a_label_outlives_rebalances_removals_and_the_store() -> None:
    """A connection belongs to one consumer, and a consumer to one group, for as long as it lasts."""
    cluster = started()
    cluster.fetch(3, P0, "busy")
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.wait(120)
    cluster.delay(3)
    cluster.fetch(3, P1, "busy")
    assert cluster.labels(3) == {"g": 2}


def test_a_client_with_another_client_id_on_the_same_connection_is_another_client() -> None:
    """A proxy may carry several clients on one connection."""
    cluster = started()
    cluster.consumer("h", P1, client=ClientAddress("10.0.0.7", "other"))
    cluster.fetch(3, P0, "shared")
    cluster.fetch(3, P1, "shared", ClientAddress("10.0.0.7", "other"))
    assert cluster.labels(3) == {"g": 1, "h": 1}


def test_a_deletion_that_comes_late_spares_the_new_member() -> None:
    """The coordinator's requests wait; meanwhile a new coordinator has loaded the group."""
    cluster = started()
    cluster.delay(2)
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.load(3, "g", 2)
    cluster.join(3, "g", "m2")
    cluster.assign(3, "g", "m2", P0)
    cluster.deliver(2)
    cluster.wait(70)
    cluster.fetch(1, P0, "new")
    assert cluster.labels(1) == {"g": 1}
    assert "g@g-m@1" not in children(cluster)


def test_between_two_coordinators_the_old_children_answer() -> None:
    """The coordinator was killed, and no other has loaded the group yet."""
    cluster = started()
    cluster.restart(2)
    cluster.fetch(3, P0, "new")
    assert cluster.labels(3) == {"g": 1}


def test_a_new_coordinator_replaces_the_children_of_the_old_one() -> None:
    """Those of members, and those whose deletion the old one did not live to send."""
    cluster = started()
    cluster.join(2, "g", "dead")
    cluster.restart(2)
    cluster.load(3, "g", 2, {"g-m": AssignedMember(APP, frozenset({P0}))})
    cluster.wait(2)
    assert {name for name in children(cluster) if not name.startswith("hint")} == {"g@g-m@2"}


def test_a_coordinator_leaves_children_of_a_newer_epoch_and_of_other_groups() -> None:
    """It was replaced and does not know; or the group was never its own."""
    cluster = started()
    cluster.load(3, "g", 2, {"g-m": AssignedMember(APP, frozenset({P0}))})
    cluster.load(1, "h", 7)
    cluster.wait(2)
    cluster.load(2, "g", 1)
    cluster.wait(70)
    assert "g@g-m@2" in children(cluster)


def test_a_fetch_waits_for_a_member_whose_child_comes_late() -> None:
    """The coordinator's write took five seconds. The count waits, the consumer does not."""
    cluster = Cluster("incarnation")
    cluster.load(2, "g", 1)
    cluster.delay(2)
    cluster.join(2, "g", "m")
    cluster.assign(2, "g", "m", P0)
    cluster.fetch(3, P0, "new")
    cluster.wait(5)
    assert cluster.labels(3) == {}
    cluster.deliver(2)
    cluster.wait(2)
    assert cluster.labels(3) == {"g": 1}


def test_a_fetch_of_a_short_lived_consumer_is_counted_after_it_left() -> None:
    """It fetched, closed and left before the broker had read its claim."""
    cluster = started()
    cluster.delay(3)
    cluster.fetch(3, P0, "short")
    cluster.close(3, "short")
    cluster.remove(2, "g", "g-m", Removal.LEFT)
    cluster.wait(10)
    cluster.deliver(3)
    assert cluster.labels(3) == {"g": 1}


def test_a_stranger_after_the_member_left_has_no_label() -> None:
    """The look-alike: same host, client id and partition, some seconds later."""
    cluster = started()
    cluster.remove(2, "g", "g-m", Removal.LEFT)
    cluster.wait(3)
    cluster.fetch(3, P0, "stranger")
    cluster.wait(40)
    assert cluster.labels(3) == {"": 1}


def test_a_stranger_before_the_member_joined_has_no_label() -> None:
    """Its count still waits when the member comes, and the member's claim begins later."""
    cluster = Cluster("incarnation")
    cluster.fetch(3, P0, "stranger")
    cluster.close(3, "stranger")
    cluster.wait(5)
    cluster.consumer("g", P0)
    cluster.wait(40)
    assert cluster.labels(3) == {"": 1}


def test_a_late_read_does_not_give_a_fetch_to_the_next_owner_of_the_partition() -> None:
    """Both groups have the address. While the broker waits for the store, g gives P0 up and h gets it."""
    cluster = started()
    cluster.consumer("h", P1)
    cluster.delay(3)
    cluster.fetch(3, P0, "of-g")
    cluster.assign(2, "g", "g-m", P1)
    cluster.assign(2, "h", "h-m", P0)
    cluster.deliver(3)
    cluster.wait(40)
    assert cluster.labels(3) == {"ambiguous": 1}


def test_an_expired_member_that_shares_its_address_is_not_taken_for_the_other_group() -> None:
    """It wakes from a pause and fetches before its heartbeat tells it that it was removed."""
    cluster = started()
    cluster.consumer("h", P0)
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.wait(3)
    cluster.fetch(3, P0, "of-g")
    cluster.wait(40)
    assert cluster.labels(3) == {"ambiguous": 1}


def test_the_last_fetch_of_an_expired_member_is_counted_when_it_has_joined_again() -> None:
    """It fetched on a new connection, joined again, got another partition, and never used that one again."""
    cluster = started()
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.wait(3)
    cluster.fetch(3, P0, "once")
    cluster.join(2, "g", "m2")
    cluster.assign(2, "g", "m2", P1)
    cluster.wait(3)
    assert cluster.labels(3) == {"g": 1}


def test_one_member_id_in_two_groups_is_two_members() -> None:
    """Since KIP-848, clients choose their member ids."""
    cluster = Cluster("incarnation")
    for group, partition in (("g", P0), ("h", P1)):
        cluster.load(2, group, 1)
        cluster.join(2, group, "same")
        cluster.assign(2, group, "same", partition)
    cluster.fetch(3, P0, "of-g")
    cluster.fetch(3, P1, "of-h")
    assert cluster.labels(3) == {"g": 1, "h": 1}


def test_a_failed_read_is_repeated() -> None:
    """A store that is away for some seconds costs no label."""
    cluster = started()
    cluster.delay(3)
    cluster.fetch(3, P0, "new")
    cluster.fail(3)
    cluster.wait(2)
    assert cluster.labels(3) == {"g": 1}


def test_failed_writes_are_repeated_in_their_latest_form_only() -> None:
    """The write of an older assignment, repeated after a newer one, would bring the old one back."""
    cluster = started()
    cluster.delay(2)
    cluster.join(2, "g", "g-m")
    cluster.assign(2, "g", "g-m", P1)
    cluster.fail(2)
    cluster.wait(20)
    cluster.fetch(3, P1, "new")
    cluster.fetch(3, P0, "stranger")
    cluster.wait(40)
    assert cluster.labels(3) == {"g": 1, "": 1}


def test_nothing_is_left_of_a_consumer_that_has_gone() -> None:
    """Not even the node of its address."""
    cluster = started()
    cluster.remove(2, "g", "g-m", Removal.LEFT)
    cluster.wait(200)
    assert cluster.nodes(MEMBERS_ROOT) == {}


def test_hints_of_a_broker_that_died_age_out() -> None:
    """Any coordinator sweeps them."""
    cluster = Cluster("incarnation")
    cluster.find(1, "g")
    cluster.restart(1)
    cluster.load(2, "other", 1)
    cluster.wait(500)
    assert len(children(cluster)) == 1
    cluster.wait(200)
    assert children(cluster) == set()


def test_a_consumer_that_only_assigns_is_known_for_hours() -> None:
    """It asked for its coordinator once. The broker that serves it renews the hint while it fetches."""
    cluster = Cluster("incarnation")
    cluster.find(1, "g")
    for _ in range(120):
        cluster.fetch(3, P0, "busy")
        cluster.wait(60)
    assert len(children(cluster)) == 1
    cluster.fetch(2, P0, "moved")
    assert cluster.labels(2) == {"g": 1}
    cluster.wait(700)
    assert children(cluster) == set()


def test_nodes_that_others_wrote_are_left_alone() -> None:
    """They are no claims."""
    cluster = started()
    cluster.store.carry_out(Put(9, f"{ADDRESS}/note", b"hello"))
    cluster.remove(2, "g", "g-m", Removal.LEFT)
    cluster.wait(200)
    assert children(cluster) == {"note"}
