"""Each order of events that breaks a plan, and the plans that it does not break.

Broker 1 answers FindCoordinator, broker 2 coordinates, and a partition moves to broker 3. There the consumer
has a new connection, for which the mapping is read.
"""

import pytest

from kelpie.attribution.addresses import KOP_ROOT, MEMBERS_ROOT, ClientAddress
from kelpie.attribution.plan import AssignedMember, Removal
from kelpie.attribution.plans import PLANS
from tests.attribution.cluster import APP, P0, P1, Cluster

ALL = list(PLANS)
RIGHT = {"g": 1}
LOST = {"": 1}


def outcomes(plans: list[str], **different: dict[str, int]) -> list[tuple[str, dict[str, int]]]:
    return [(plan, different.get(plan, RIGHT)) for plan in plans]


@pytest.mark.parametrize("plan", ALL)
def test_healthy_consumers_keep_their_label_when_a_partition_moves(plan: str) -> None:
    """The look-alike of every fault below: a move alone loses nothing."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.fetch(1, P0, "old")
    cluster.fetch(3, P0, "new")
    assert cluster.labels(1) == RIGHT
    assert cluster.labels(3) == RIGHT


@pytest.mark.parametrize(("plan", "labels"), outcomes(ALL, connection=LOST))
def test_the_broker_that_answered_find_coordinator_restarts(plan: str, labels: dict[str, int]) -> None:
    """The document's own case: the connection closes, the mapping is deleted, the consumer goes on."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.stop(1, "find-g")
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize(("plan", "labels"), outcomes(ALL, connection=LOST))
def test_the_idle_connection_of_find_coordinator_closes(plan: str, labels: dict[str, int]) -> None:
    """Java's default closes it after nine minutes. No broker restarts, and the label is lost all the same."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.wait(560)
    cluster.close(1, "find-g")
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize(("plan", "labels"), outcomes(ALL, join=LOST))
def test_the_consumer_reconnects_to_its_coordinator(plan: str, labels: dict[str, int]) -> None:
    """It is still a member and does not join again: nothing writes the mapping that the close deleted."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.close(2, "join-g")
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize(("plan", "labels"), outcomes(ALL, coordinator=LOST, reconciled=LOST))
def test_a_client_notices_its_timeout_before_the_coordinator_does(plan: str, labels: dict[str, int]) -> None:
    """Plan 2's race: the new write comes first, then the deletion that was meant for the old one."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.find(1, "g", connection="find-again")
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.join(2, "g", "m2", connection="join-again")
    cluster.assign(2, "g", "m2", P0)
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize(("plan", "labels"), outcomes(ALL, coordinator=LOST))
def test_reconciliation_mends_what_the_race_deleted(plan: str, labels: dict[str, int]) -> None:
    """The same race, but the partition moves more than a minute later."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.find(1, "g", connection="find-again")
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.join(2, "g", "m2", connection="join-again")
    cluster.assign(2, "g", "m2", P0)
    cluster.wait(70)
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize(("plan", "labels"), outcomes(ALL, coordinator=LOST, reconciled=LOST))
def test_an_expired_member_joins_again_without_find_coordinator(plan: str, labels: dict[str, int]) -> None:
    """It knows its coordinator, which answers UNKNOWN_MEMBER_ID: the mapping is not written again."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.join(2, "g", "m2")
    cluster.assign(2, "g", "m2", P0)
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize("plan", ["coordinator", "reconciled", "incarnation"])
def test_a_coordinator_that_shuts_down_deletes_no_mapping(plan: str) -> None:
    """Sessions that expire while it stops are its own doing. The new coordinator has the members."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.stop(2, "join-g")
    cluster.load(3, "g", 2, {"g-m": AssignedMember(APP, frozenset({P0}))})
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == RIGHT


@pytest.mark.parametrize(("plan", "labels"), outcomes(ALL, join=LOST, coordinator=LOST, reconciled=LOST))
def test_a_coordinator_that_was_replaced_expires_a_member(plan: str, labels: dict[str, int]) -> None:
    """It does not know yet that it is no longer the coordinator, and hears no heartbeats."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.load(3, "g", 2, {"g-m": AssignedMember(APP, frozenset({P0}))})
    cluster.close(2, "join-g")
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize("plan", ALL)
def test_two_groups_with_one_client_id_read_different_partitions(plan: str) -> None:
    """KoP's node holds one group: the traffic of both goes to the last writer. Partitions tell them apart."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.consumer("h", P1)
    cluster.fetch(3, P0, "of-g")
    cluster.fetch(3, P1, "of-h")
    assert cluster.labels(3) == ({"g": 1, "h": 1} if plan == "incarnation" else {"h": 2})


@pytest.mark.parametrize("plan", ALL)
def test_two_groups_with_one_client_id_read_one_partition(plan: str) -> None:
    """Nothing tells them apart, so `incarnation` says so, after it has waited for more to go by."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.consumer("h", P0)
    cluster.fetch(3, P0, "of-g")
    cluster.fetch(3, P0, "of-h")
    cluster.wait(40)
    cluster.fetch(3, P0, "of-h")
    assert cluster.labels(3) == ({"ambiguous": 3} if plan == "incarnation" else {"h": 3})


def test_a_partition_that_only_one_group_reads_tells_the_rest_of_a_connection() -> None:
    """Both groups read P0, only g reads P1: a connection that fetches both is g's, from its beginning."""
    cluster = Cluster("incarnation")
    cluster.consumer("g", P0, P1)
    cluster.consumer("h", P0)
    cluster.fetch(3, P0, "of-g")
    assert cluster.labels(3) == {}
    cluster.wait(2)
    cluster.fetch(3, P1, "of-g")
    assert cluster.labels(3) == {"g": 2}


@pytest.mark.parametrize(
    ("plan", "labels"), outcomes(ALL, connection=LOST, join=LOST, coordinator=LOST, reconciled=LOST)
)
def test_one_of_two_groups_with_one_client_id_leaves(plan: str, labels: dict[str, int]) -> None:
    """Its deletion removes the mapping of both."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.consumer("h", P1)
    cluster.remove(2, "h", "h-m", Removal.LEFT)
    cluster.close(1, "find-h")
    cluster.close(2, "join-h")
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(3) == labels


@pytest.mark.parametrize("plan", ALL)
def test_a_member_that_does_not_join_again_leaves_a_mapping(plan: str) -> None:
    """Plan 2 does not hear of this third way to remove a member; plan 3 finds the leak later."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.remove(2, "g", "g-m", Removal.NOT_REJOINED)
    cluster.close(1, "find-g")
    cluster.close(2, "join-g")
    cluster.wait(400)
    leaked = [
        path for root in (KOP_ROOT, MEMBERS_ROOT) for path, value in cluster.nodes(root).items() if value
    ]
    assert leaked == ([f"{KOP_ROOT}/10.0.0.7-app"] if plan == "coordinator" else [])


@pytest.mark.parametrize("plan", ALL)
def test_a_killed_cluster_leaves_mappings_and_a_stranger_gets_the_label(plan: str) -> None:
    """A consumer without a group has the client id of a dead one. The truth is that it has no group."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    for broker in (1, 2, 3):
        cluster.restart(broker)
    cluster.load(2, "g", 2, {"g-m": AssignedMember(APP, frozenset({P0}))})
    cluster.wait(45)
    cluster.remove(2, "g", "g-m", Removal.EXPIRED)
    cluster.wait(5)
    cluster.fetch(3, P0, "stranger")
    cluster.wait(40)
    assert cluster.labels(3) == (RIGHT if plan in {"connection", "join"} else LOST)


@pytest.mark.parametrize("plan", ALL)
def test_a_consumer_that_only_assigns(plan: str) -> None:
    """It never joins. Plan 1 never has it; the others have what FindCoordinator wrote, which may leak."""
    cluster = Cluster(plan)
    cluster.find(1, "g")
    cluster.fetch(1, P0, "first")
    cluster.close(1, "find")
    cluster.fetch(3, P0, "new")
    cluster.wait(40)
    assert cluster.labels(1) == (LOST if plan == "join" else RIGHT)
    assert cluster.labels(3) == (LOST if plan in {"join", "connection"} else RIGHT)
    cluster.close(1, "first")
    cluster.close(3, "new")
    cluster.wait(700)
    left = [path for root in (KOP_ROOT, MEMBERS_ROOT) for path, value in cluster.nodes(root).items() if value]
    assert bool(left) == (plan in {"coordinator", "reconciled"})


@pytest.mark.parametrize("plan", ALL)
@pytest.mark.parametrize("client_id", ["", "a/b", 'we"ird', "-", "ü", "new\nline", "a//b", "..", "🐕"])
@pytest.mark.parametrize("host", ["10.0.0.7", "2001:db8::7"])
def test_hostile_client_ids(plan: str, client_id: str, host: str) -> None:
    """Where ZooKeeper refuses KoP's path, KoP's plans have no label; `incarnation` escapes the name."""
    client = ClientAddress(host, client_id)
    cluster = Cluster(plan)
    cluster.consumer('g"\n/', P0, client=client)
    cluster.wait(70)
    cluster.fetch(3, P0, "new", client)
    refused = client_id in {"new\nline", "a//b", "🐕"} and plan != "incarnation"
    assert cluster.labels(3) == (LOST if refused else {'g"\n/': 1})
