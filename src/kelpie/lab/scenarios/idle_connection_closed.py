"""With KoP: an idle connection closes after nine minutes, and a group's traffic loses its name.

The Java client asks for its coordinator on a connection that it does not need
again, and closes it when it has been idle for connections.max.idle.ms. KoP takes
that for the end of the consumer, and removes its node. Nothing was restarted.
"""

from kelpie.lab.scenarios.group_setup import RECORDS, SINCE_2_8, cluster_with, gather, new_member
from kelpie.lab.scenarios.kop import KopRecorder
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage

NAME = "idle-connection-closed"
PERSONAS = SINCE_2_8
_GROUP, _OTHER = "billing", "audit"
_CLIENT_ID = f"consumer-{_GROUP}-1"
_FINDER, _BEFORE, _AFTER = 1, 2, 3


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2})
    kop = KopRecorder(stage, cluster)
    app = new_member(stage, cluster, _GROUP, _CLIENT_ID)
    other = new_member(stage, cluster, _OTHER, "app-2")
    stage.step(f"Two consumers ask broker {_FINDER} for their coordinators, and read from broker {_BEFORE}.")
    for consumer in (app, other):
        kop.finds_coordinator(consumer, _FINDER)
        await gather(cluster, consumer)
        await kop.reads(consumer, _BEFORE, RECORDS)
    kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"{_CLIENT_ID} closes its idle connection to broker {_FINDER}, and reads on.")
    kop.closes_finder(app, _FINDER)
    stage.expect(kop.group_of(_CLIENT_ID) is None, "its node is gone")
    stage.step(f"The partitions move to broker {_AFTER}.")
    await produce(stage, cluster, "orders", RECORDS)
    for consumer in (app, other):
        await kop.reads(consumer, _AFTER, 2 * RECORDS)
        await consumer.commit()
    kop.record()
    await stage.incident(cluster, finds={"KLP401": [_GROUP], "KLP407": [_GROUP]}, needs_logs=True)
