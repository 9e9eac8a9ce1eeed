"""With KoP: a broker is killed, the node of a consumer stays, and others are counted to its group.

Nodes of the mapping tree are not ephemeral, and a broker that is killed removes
nothing. Whoever comes later with the same host and client id, and does not write
the node anew, is counted to the group that is gone.
"""

from kelpie.lab.scenarios.group_setup import RECORDS, SINCE_2_8, cluster_with, gather, new_member
from kelpie.lab.scenarios.kop import KopRecorder
from kelpie.lab.scenarios.stage import Stage

NAME = "stale-mapping"
PERSONAS = SINCE_2_8
_OLD, _NEW = "billing-2025", "billing"
_BROKER = 1


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2})
    kop = KopRecorder(stage, cluster)
    old = new_member(stage, cluster, _OLD, "app-1")
    stage.step(f"A consumer of {_OLD} reads.")
    kop.finds_coordinator(old, _BROKER)
    await gather(cluster, old)
    await kop.reads(old, _BROKER, RECORDS)
    kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step("It ends, and its broker is killed before it has seen that.")
    await old.close()
    await cluster.wait_for_group(_OLD, "Empty")
    kop.is_killed(_BROKER)
    stage.expect(kop.group_of("app-1") == _OLD, f"the node stays, and names {_OLD}")
    kop.record()
    await stage.incident(cluster, finds={"KLP405": [_OLD]}, needs_logs=True)

    stage.step(f"The consumer is started for group {_NEW}. ZooKeeper does not take the write of its node.")
    new = new_member(stage, cluster, _NEW, "app-1")
    await gather(cluster, new)
    await kop.reads(new, _BROKER, RECORDS)
    stage.expect(kop.group_of("app-1") == _OLD, f"what {_NEW} reads is counted to {_OLD}")
    kop.record()
    await stage.incident(cluster, finds={"KLP403": [_NEW]}, needs_logs=True)
