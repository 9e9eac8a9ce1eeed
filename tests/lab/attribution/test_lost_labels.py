"""How a group's traffic loses its name, live: under the plan that has the fault, and not under the next.

Real clients (librdkafka) and a real ZooKeeper. What must happen in an order is put into it by faults of the
lab: a request to the store is held, a connection is broken. Messages are sent when everything else has
happened, so each is counted by what is known then.
"""

import pytest

from kelpie.attribution.plan import Plan
from kelpie.errors import ErrorCode
from tests.lab.attribution.live import B, Live, hastened, live

pytestmark = pytest.mark.real

GROUP, APP = "billing", "app-1"


@pytest.mark.parametrize(("plan", "label"), [("connection", ""), ("join", GROUP), ("incarnation", GROUP)])
def test_the_broker_that_answered_find_coordinator_restarts(plan: str, label: str, zookeeper: str) -> None:
    """The document's own reproduction: A answers FindCoordinator, B coordinates, the partition moves to C."""
    with live(plan, zookeeper) as lab, lab.consumer_finding_at_a(GROUP, APP) as reader:
        lab.read(reader, 10, GROUP)
        lab.move_partition()
        assert (APP in lab.mappings) == (plan == "join")
        lab.read(reader, 10, label)
        lab.cluster.start(1)
        lab.read(reader, 10, label)
        assert lab.counted == {label: 20}


@pytest.mark.parametrize(("plan", "label"), [("join", ""), ("coordinator", GROUP)])
def test_a_member_reconnects_and_does_not_join_again(plan: str, label: str, zookeeper: str) -> None:
    """What the first plan missed: a broken connection is no reason to join, so nothing is written again."""
    with live(plan, zookeeper) as lab, lab.consumer(GROUP, APP) as reader:
        lab.read(reader, 10, GROUP)
        joins = lab.cluster.observe(api="JoinGroup")
        broken = lab.cluster.disconnect(api="Heartbeat", client=APP, count=1)
        reader.poll(lambda: broken.hits)
        heartbeats = lab.cluster.observe(api="Heartbeat", client=APP)
        reader.poll(lambda: heartbeats.hits)
        assert lab.mappings == ({} if plan == "join" else {APP: GROUP})
        lab.move_partition()
        lab.read(reader, 10, label)
        assert not joins.hits


@pytest.mark.parametrize(
    ("plan", "label"),
    [
        ("coordinator", ""),
        (hastened("reconciled", interval_ms=500), GROUP),
        ("incarnation", GROUP),
    ],
    ids=["coordinator", "reconciled", "incarnation"],
)
def test_a_pause_after_which_the_client_is_first(plan: str | type[Plan], label: str, zookeeper: str) -> None:
    """What beat the second plan: the client times out, and writes, before the coordinator deletes.

    The connection to the coordinator stands still until the session has expired, for the client as well. The
    deletion is held. The client joins again; an error makes it ask for its coordinator first, as the Java
    client does by itself. That writes its mapping; then the deletion is carried out.
    """
    is_on_kops_tree = plan != "incarnation"
    with live(plan, zookeeper) as lab, lab.consumer(GROUP, APP, session_timeout_ms=1000) as reader:
        lab.read(reader, 10, GROUP)
        held = lab.cluster.hold_mappings(node=B, operation="delete" if is_on_kops_tree else "put")
        pause = lab.cluster.stall(client=APP, node=B)
        reader.poll(lambda: held.hits)
        with lab.not_finding_at(B):
            finding = lab.cluster.observe(api="FindCoordinator", client=APP)
            lab.cluster.fail(ErrorCode.NOT_COORDINATOR, api="JoinGroup", client=APP, count=1)
            pause.lift()
            reader.poll(lambda: any(seen.node_id != B for seen in finding.requests))
            if is_on_kops_tree:
                reader.poll(lambda: lab.mappings == {APP: GROUP})
            held.lift()
            if plan == "coordinator":
                reader.poll(lambda: not lab.mappings)
        reader.poll(lambda: _is_stable(lab))
        if is_on_kops_tree and label:
            reader.poll(lambda: lab.mappings == {APP: GROUP})
        lab.move_partition()
        lab.read(reader, 10, label)


def _is_stable(lab: Live) -> bool:
    return any(
        group["group"] == GROUP and group["state"] == "Stable" for group in lab.cluster.describe()["groups"]
    )
