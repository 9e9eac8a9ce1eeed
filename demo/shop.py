"""The cluster of the demo: the lab with three brokers, and the folder of all that is known of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for

OFFSETS_PARTITIONS = 50
ORDERS, PAYMENTS, CLICKS = "orders", "payments", "clicks"
TRANSACTION_LOG = "__transaction_state"
PATIENCE_S = 300.0
"""On a busy machine each step of a client takes seconds; else the longest wait is one of a few seconds."""
_SETTINGS: dict[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "offsets.retention.check.interval.ms": 200,
    "transaction.state.log.min.isr": 1,
}


class DemoFailed(Exception):
    """Something did not happen in time; the text says what."""


def wait_until(what: str, condition: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise DemoFailed(f"This did not happen within {limit_s:.0f} s: {what}.")
        time.sleep(0.05)


@dataclass(frozen=True)
class Shop:
    """What every part of the demo uses."""

    cluster: SyncCluster
    evidence: Path
    """Logs of brokers and clients, scrapes and surveys: what `kelpie doctor --evidence` reads."""

    @property
    def bootstrap(self) -> str:
        """For clients."""
        return self.cluster.bootstrap_servers

    @property
    def address(self) -> str:
        """For commands: one broker is enough, and broker 1 is the one that stays."""
        return self.address_of(1)

    def address_of(self, node: int) -> str:
        brokers = self.cluster.describe()["brokers"]
        return str(next(broker["address"] for broker in brokers if broker["id"] == node))

    def home_of(self, group: str) -> dict[str, Any]:
        """The partition of the offsets topic on which a group lives, with its leader and its replicas."""
        partitions = self.cluster.describe()["topics"]["__consumer_offsets"]
        home: dict[str, Any] = partitions[partition_for(group, OFFSETS_PARTITIONS)]
        return home

    def leader_of(self, topic: str) -> int:
        """Of its first partition."""
        return int(self.cluster.describe()["topics"][topic][0]["leader"])

    def has_leaders(self, topic: str) -> bool:
        return all(partition["leader"] > 0 for partition in self.cluster.describe()["topics"][topic])

    def is_in_sync(self, node: int) -> bool:
        """Whether a broker has caught up with all partitions that it has a copy of."""
        topics = self.cluster.describe()["topics"].values()
        return all(
            node in partition["isr"]
            for partitions in topics
            for partition in partitions
            if node in partition["replicas"]
        )


def new_cluster(evidence: Path) -> SyncCluster:
    """Each partition of the offsets topic has two copies: two brokers that die take a third of them along."""
    return SyncCluster(
        brokers=3,
        offsets_partitions=OFFSETS_PARTITIONS,
        replication=2,
        config=_SETTINGS,
        log_folder=evidence / "brokers",
        attribution="connection",  # Brokers count what each group reads, as those with KoP do.
    )


def create_topics(cluster: SyncCluster) -> None:
    cluster.create_topic(ORDERS, partitions=3, replication=3)
    cluster.create_topic(PAYMENTS, assignment={0: (2, 3, 1)})
    cluster.create_topic(CLICKS, assignment={0: (1, 3, 2)})
    cluster.create_topic(TRANSACTION_LOG, config={"cleanup.policy": "compact"}, assignment={0: (3, 2)})
