"""Where a group lives: its partition of the offsets topic, who leads that, and whether it is healthy."""

from dataclasses import dataclass

from kelpie.cluster.health import Health, health_of
from kelpie.cluster.view import ClusterView
from kelpie.model.partitioning import java_hash
from kelpie.observations import PartitionView


@dataclass(frozen=True, slots=True)
class Whereabouts:
    group: str
    hash: int
    """As Java computes it."""
    partition: int
    """Of the offsets topic."""
    view: PartitionView | None = None
    """None: nobody was asked, or nobody could say."""
    leader: str = ""
    """The broker with its address, if that is known; empty: there is none."""
    health: Health | None = None
    """None: nobody was asked."""
    verdict: str = ""
    """Whether it is healthy, in words."""

    @property
    def is_led(self) -> bool:
        """Whether a living broker coordinates the group; also where nobody was asked."""
        return self.health is None or self.health.is_led


def whereabouts(cluster: ClusterView, group: str) -> Whereabouts:
    """The cluster must know how many partitions the offsets topic has. The group need not exist."""
    home = cluster.home_of(group)
    assert home is not None
    hashed = java_hash(group)
    if not cluster.views:
        return Whereabouts(group, hashed, home.partition)
    view = cluster.view(home)
    if view is None:
        verdict = "nobody could say"
        return Whereabouts(group, hashed, home.partition, health=Health.UNKNOWN, verdict=verdict)
    health = health_of(cluster, home)
    broker = cluster.brokers.get(view.leader)
    reason = broker.reason if broker else "nothing tells of its leader"
    verdicts = {
        Health.NO_LEADER: "no: it has no leader (KLP101)",
        Health.LEADER_DEAD: f"no: broker {view.leader} is dead (KLP101)",
        Health.UNKNOWN: f"not known: {reason}",
        Health.AT_RISK: f"yes, but broker {view.leader} alone is in sync (KLP106)",
    }
    leader = "" if view.leader < 0 else str(broker or view.leader).removeprefix("broker ")
    verdict = verdicts.get(health, "yes")
    return Whereabouts(group, hashed, home.partition, view, leader, health, verdict)
