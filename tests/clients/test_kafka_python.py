"""kafka-python against the lab and against Kafka 4.3.1."""

from typing import Any

import pytest
from kafka.net.inet import KafkaNetSocket

from tests.clients.drivers.kafka_python import CLIENT
from tests.clients.scenarios.administration import GroupAdministration, TopicAdministration
from tests.clients.scenarios.consuming import Consuming
from tests.clients.scenarios.failover import Failover
from tests.clients.scenarios.groups import CooperativeMembership, Groups, StaticMembership
from tests.clients.scenarios.producing import Producing
from tests.clients.scenarios.transactions import Transactions


@pytest.fixture(autouse=True)
def _closed_when_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library leaves the socket of a refused connection to the garbage collector, which complains."""
    connect = KafkaNetSocket.sock_connect

    async def close_at_failure(self: KafkaNetSocket, net: Any, sock: Any, *rest: Any, **options: Any) -> Any:
        try:
            return await connect(self, net, sock, *rest, **options)
        except BaseException:
            sock.close()
            raise

    monkeypatch.setattr(KafkaNetSocket, "sock_connect", close_at_failure)


class TestKafkaPython(
    Producing,
    Consuming,
    Groups,
    StaticMembership,
    CooperativeMembership,
    Transactions,
    TopicAdministration,
    GroupAdministration,
    Failover,
):
    client = CLIENT
