"""The Java client closes an idle connection, and with it a label: live, with ZooKeeper."""

from collections.abc import Callable

import pytest

from kelpie.errors import ErrorCode
from tests.lab.attribution.live import TOPIC, A, B, live
from tests.lab.clients.clusters import Lab
from tests.lab.java.clients import Clients
from tests.lab.java.jvm import KafkaJvm

pytestmark = pytest.mark.real

GROUP, APP = "billing", "app-1"
_IDLE_MS = 1_000
"""Nine minutes by default."""


@pytest.mark.parametrize(("plan", "label"), [("connection", ""), ("join", GROUP)])
def test_an_idle_connection_closes(
    plan: str, label: str, java: KafkaJvm, zookeeper: str, wait_until: Callable[..., None]
) -> None:
    """The client asks broker C for its coordinator, needs C no more, and closes that connection.

    Nothing was restarted, and the consumer never stops reading. When its partition moves, its label is lost.
    """
    with live(plan, zookeeper) as lab:
        clients = Clients(java, Lab(lab.cluster))
        elsewhere = [
            lab.cluster.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE, api="FindCoordinator", node=node)
            for node in (A, B)
        ]
        settings = {"client.id": APP, "connections.max.idle.ms": _IDLE_MS}
        consumer = clients.consumer(GROUP, settings)
        consumer.subscribe([TOPIC])
        got: list[object] = []

        def read(count: int) -> None:
            lab.send(10)
            got.extend(clients.poll_for(consumer, count - len(got)))

        try:
            read(10)
            for refusal in elsewhere:
                refusal.lift()
            wait_until(lambda: lab.counted == {GROUP: 10})
            if plan == "connection":
                wait_until(lambda: clients.poll(consumer) or not lab.mappings)
            else:
                wait_until(lambda: lab.mappings == {APP: GROUP})
            lab.move_partition()
            read(20)
            wait_until(lambda: sum(lab.counted.values()) >= 10)
            assert lab.counted == {label: 10}
        finally:
            clients.close()
