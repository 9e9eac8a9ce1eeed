"""Three brokers that count by a plan, their mapping in a real ZooKeeper, and where everything is on them.

As in the account of the fault: consumers ask broker A for their coordinator, which is B, and read from A.
When A goes, the partition moves to C.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kelpie.attribution.addresses import KOP_ROOT, MEMBERS_ROOT
from kelpie.attribution.plan import Plan
from kelpie.attribution.plans import PLANS
from kelpie.lab import SyncCluster
from tests.lab.counted import QUICK, Reader, consumer, counted, send

A, B, C = 1, 2, 3
TOPIC = "orders"
_SETTINGS = {**QUICK, "broker.session.timeout.ms": 500}


def hastened(plan: str, **intervals: int) -> type[Plan]:
    """The plan with shorter intervals, by their names."""
    return type(plan, (PLANS[plan],), intervals)


class Live:
    def __init__(self, cluster: SyncCluster) -> None:
        self.cluster = cluster

    @property
    def counted(self) -> Mapping[str, int]:
        """Messages by group, over the brokers that are up."""
        return counted(self.cluster)

    @property
    def mappings(self) -> dict[str, str]:
        """KoP's tree: client id and group."""
        prefix = f"{KOP_ROOT}/127.0.0.1-"
        return {path.removeprefix(prefix): group for path, group in self.cluster.mappings().items()}

    @property
    def claims(self) -> dict[str, str]:
        """The tree of the plan `incarnation`, without the nodes of addresses."""
        return {path: value for path, value in self.cluster.mappings(MEMBERS_ROOT).items() if value}

    def send(self, count: int, topic: str = TOPIC) -> None:
        send(self.cluster, topic, count)

    @contextmanager
    def consumer(self, group: str, client_id: str, topic: str = TOPIC, **settings: Any) -> Iterator[Reader]:
        """A member that has its assignment."""
        with consumer(self.cluster, group, client_id, **settings) as reader:
            reader.client.subscribe([topic])
            reader.poll(reader.client.assignment)
            yield reader

    @contextmanager
    def consumer_finding_at_a(self, group: str, client_id: str, **settings: Any) -> Iterator[Reader]:
        """A member that has asked A for its coordinator. No other client may be there."""
        with consumer(self.cluster, group, client_id, **settings) as reader, self.not_finding_at(B, C):
            walls = [self.cluster.wall_off(node) for node in (B, C)]
            reader.client.subscribe([TOPIC])
            reader.poll(lambda: reader.knows_coordinator)
            for wall in walls:
                wall.lift()
            reader.poll(reader.client.assignment)
            yield reader

    @contextmanager
    def not_finding_at(self, *nodes: int) -> Iterator[None]:
        """These brokers do not answer FindCoordinator, until the end of the block: they break the connection.

        After an error, librdkafka would ask the same broker again.
        """
        broken = [self.cluster.disconnect(api="FindCoordinator", node=node) for node in nodes]
        yield
        for fault in broken:
            fault.lift()

    def read(self, reader: Reader, more: int, label: str) -> None:
        """More messages are sent, read and committed; all of them are counted under this label."""
        before = self.counted.get(label, 0)
        self.send(more)
        reader.read(reader.messages + more)
        reader.client.commit(asynchronous=False)
        reader.poll(lambda: self.counted.get(label, 0) >= before + more)
        assert self.counted.get(label, 0) == before + more

    def move_partition(self) -> None:
        """A stops, and C leads. What A has counted is gone with it."""
        self.cluster.stop(A)
        assert self.cluster.describe()["topics"][TOPIC][0]["leader"] == C


@contextmanager
def live(plan: str | type[Plan], zookeeper: str) -> Iterator[Live]:
    with SyncCluster(3, config=_SETTINGS, attribution=plan, zookeeper=zookeeper) as cluster:
        cluster.create_topic(TOPIC, assignment={0: [A, C]})
        cluster.create_topic(
            "__consumer_offsets", assignment={0: [B, C]}, config={"cleanup.policy": "compact"}
        )
        yield Live(cluster)
