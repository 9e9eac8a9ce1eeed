"""With KoP: a broker is killed, the node of a consumer stays, and others are counted to its group.

Nodes of the mapping tree are not ephemeral, and a broker that is killed removes
nothing. Whoever comes later with the same host and client id, and does not write
the node anew, is counted to the group that is gone.
"""

from kelpie.lab.scenarios.group_setup import SINCE_2_8, gather, new_member
from kelpie.lab.scenarios.kop import A, Recording, counting_cluster, finding_at
from kelpie.lab.scenarios.stage import Stage

NAME = "stale-mapping"
PERSONAS = SINCE_2_8
_OLD, _NEW = "billing-2025", "billing"


async def run(stage: Stage) -> None:
    cluster = await counting_cluster(stage)
    kop = Recording(stage, cluster)
    old = new_member(stage, cluster, _OLD, "app-1")
    stage.step(f"A consumer of {_OLD} reads. Broker {A} has told it its coordinator.")
    with finding_at(cluster, A):
        await gather(cluster, old)
    await kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"Broker {A} is killed. The consumer ends, and the broker starts again.")
    await cluster.kill(A)
    await old.close()
    await cluster.wait_for_group(_OLD, "Empty")
    await cluster.start(A)
    stage.expect(await kop.group_of("app-1") == _OLD, f"the node stays, and names {_OLD}")
    await kop.record()
    await stage.incident(cluster, finds={"KLP405": [_OLD]}, needs_logs=True)

    stage.step(f"The consumer is started for group {_NEW}. ZooKeeper does not take the write of its node.")
    with cluster.refuse_mappings(operation="put"):
        new = new_member(stage, cluster, _NEW, "app-1")
        await gather(cluster, new)
    stage.expect(await kop.group_of("app-1") == _OLD, f"what {_NEW} reads is counted to {_OLD}")
    await kop.record()
    await stage.incident(cluster, finds={"KLP403": [_NEW]}, needs_logs=True)
