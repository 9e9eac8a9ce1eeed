"""With KoP: the broker that answered FindCoordinator restarts, and a group's traffic loses its name.

A Fetch names no group. KoP maps the client's host and client id to the group in
ZooKeeper: it writes the node when FindCoordinator is answered, and removes it
when that connection closes. A consumer does not ask again while its coordinator
lives. So after the restart of a broker that it does not need, what it reads from
the next broker is counted to nobody.
"""

from kelpie.lab.scenarios.group_setup import RECORDS, SINCE_2_8, gather, new_member
from kelpie.lab.scenarios.kop import TOPIC, A, C, Recording, counting_cluster, finding_at, read_up_to
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage

NAME = "finder-restarted"
PERSONAS = SINCE_2_8
_GROUP = "billing"


async def run(stage: Stage) -> None:
    cluster = await counting_cluster(stage)
    kop = Recording(stage, cluster)
    app = new_member(stage, cluster, _GROUP, "app-1")
    stage.step(f"A consumer asks broker {A} for its coordinator, and reads from broker {A}.")
    with finding_at(cluster, A):
        await gather(cluster, app)
    stage.expect(await kop.group_of("app-1") == _GROUP, f"its node names {_GROUP}")
    await kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"Broker {A} restarts, and the partitions move to broker {C}.")
    await cluster.restart(A)
    gone = await kop.until_gone("app-1")
    stage.expect(gone, "the node is gone, and the consumer does not ask again")
    await produce(stage, cluster, TOPIC, RECORDS)
    await read_up_to(2 * RECORDS, app)
    await kop.record()
    await stage.incident(cluster, finds={"KLP401": [_GROUP], "KLP402": [_GROUP]}, needs_logs=True)
