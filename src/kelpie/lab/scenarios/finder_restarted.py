"""With KoP: the broker that answered FindCoordinator restarts, and a group's traffic loses its name.

A Fetch names no group. KoP maps the client's host and client id to the group in
ZooKeeper: it writes the node when FindCoordinator is answered, and removes it
when that connection closes. A consumer does not ask again while its coordinator
lives. So after the restart of a broker that it does not need, what it reads from
the next broker is counted to nobody.
"""

from kelpie.lab.scenarios.group_setup import RECORDS, SINCE_2_8, cluster_with, gather, new_member
from kelpie.lab.scenarios.kop import KopRecorder
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage

NAME = "finder-restarted"
PERSONAS = SINCE_2_8
_GROUP = "billing"
_A, _B, _C = 1, 2, 3


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2})
    kop = KopRecorder(stage, cluster)
    app = new_member(stage, cluster, _GROUP, "app-1")
    stage.step(f"A consumer asks broker {_A} for its coordinator, and reads from broker {_B}.")
    kop.finds_coordinator(app, _A)
    await gather(cluster, app)
    await kop.reads(app, _B, RECORDS)
    stage.expect(kop.group_of("app-1") == _GROUP, f"its node names {_GROUP}")
    kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"Broker {_A} restarts, and the partitions move to broker {_C}.")
    kop.restarts(_A)
    stage.expect(kop.group_of("app-1") is None, "the node is gone, and the consumer does not ask again")
    await produce(stage, cluster, "orders", RECORDS)
    await kop.reads(app, _C, 2 * RECORDS)
    await app.commit()
    kop.record()
    await stage.incident(cluster, finds={"KLP401": [_GROUP], "KLP402": [_GROUP]}, needs_logs=True)
