"""Brokers that count what each group reads, as KoP does, and what an operator has of them.

The brokers run the plan `connection`, which is KoP as it is. Broker B coordinates all groups. `Recording`
writes what an operator would have: a scrape of every broker that is up, and a listing of the mapping tree.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import QUICK, Application
from kelpie.lab.scenarios.group_setup import RECORDS
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage

A, B, C = 1, 2, 3
TOPIC = "orders"
_PARTITIONS = 2
_HOST = "127.0.0.1"
_FOLDER = "kop"


async def counting_cluster(stage: Stage, replicas: Sequence[int] = (A, C, B)) -> Cluster:
    """Three brokers, and a topic with records in it, with these replicas; the first one leads."""
    cluster = await stage.cluster(3, replication=3, config=QUICK, attribution="connection")
    internal = dict.fromkeys(range(6), (B, C, A))
    cluster.create_topic(OFFSETS_TOPIC, assignment=internal, config={"cleanup.policy": "compact"})
    cluster.create_topic(TOPIC, assignment=dict.fromkeys(range(_PARTITIONS), replicas))
    await produce(stage, cluster, TOPIC, RECORDS)
    return cluster


def move_to_first_replica(cluster: Cluster) -> None:
    """The topic's partitions get the leader that they had at first; no broker restarts."""
    for partition in range(_PARTITIONS):
        cluster.elect(TOPIC, partition)


@contextmanager
def finding_at(cluster: Cluster, broker: int) -> Iterator[None]:
    """Only this broker answers FindCoordinator, until the end of the block; others break the connection."""
    others = [node for node in cluster.node_ids if node != broker]
    broken = [cluster.disconnect(api="FindCoordinator", node=node) for node in others]
    yield
    for fault in broken:
        fault.lift()


async def read_up_to(offset: int, *apps: Application) -> None:
    """They read all their partitions up to this offset, and commit it."""
    for app in apps:
        for partition in app.assignment:
            await app.until_at(partition, offset)
        await app.commit()


class Recording:
    """`verbatim`: names of groups are written into scrapes as they are, as KoP does."""

    def __init__(self, stage: Stage, cluster: Cluster, *, verbatim: bool = False) -> None:
        self._stage = stage
        self._cluster = cluster
        self._verbatim = verbatim
        self._numbers = count(1)

    async def record(self) -> None:
        """Scrapes of all brokers, and a listing of the tree, into files."""
        folder = self._stage.logs / _FOLDER
        folder.mkdir(exist_ok=True)
        number = next(self._numbers)
        for node in self._cluster.node_ids:
            if self._cluster.is_alive(node):
                scrape = self._cluster.scrape(node, dated=True, verbatim=self._verbatim)
                (folder / f"{number:02}-broker-{node}.prom").write_text(scrape, "utf-8")
        listing = await self._cluster.brokers.attribution.listing(dated=True)
        (folder / f"{number:02}-mappings.zk.txt").write_text(listing, "utf-8")

    async def group_of(self, client_id: str) -> str | None:
        """The group that the node of this client names."""
        return (await self._cluster.mappings()).get(f"{KOP_ROOT}/{_HOST}-{client_id}")

    async def until_gone(self, client_id: str) -> bool:
        """Whether the node of this client has gone."""
        gone = await self._stage.until(lambda: self.group_of(client_id), lambda group: group is None)
        return gone is None
