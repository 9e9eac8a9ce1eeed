"""With KoP: an idle connection closes after nine minutes, and a group's traffic loses its name.

The Java client asks for its coordinator on a connection that it does not need
again, and closes it when it has been idle for connections.max.idle.ms. KoP takes
that for the end of the consumer, and removes its node. Nothing was restarted.
"""

from kelpie.lab.scenarios.group_setup import RECORDS, SINCE_2_8, gather, new_member
from kelpie.lab.scenarios.kop import (
    TOPIC,
    A,
    B,
    C,
    Recording,
    counting_cluster,
    finding_at,
    move_to_first_replica,
    read_up_to,
)
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage

NAME = "idle-connection-closed"
PERSONAS = SINCE_2_8
_GROUP, _OTHER = "billing", "audit"
_CLIENT_ID = f"consumer-{_GROUP}-1"
_IDLE_MS = 2_000


async def run(stage: Stage) -> None:
    cluster = await counting_cluster(stage, (C, B, A))
    await cluster.restart(C)  # So B leads, until the partitions move to their first replica.
    kop = Recording(stage, cluster)
    app = new_member(stage, cluster, _GROUP, _CLIENT_ID, connections_max_idle_ms=_IDLE_MS)
    other = new_member(stage, cluster, _OTHER, "app-2")
    stage.step(f"Two consumers ask broker {A} for their coordinators, and read from broker {B}.")
    with finding_at(cluster, A):
        for consumer in (app, other):
            await gather(cluster, consumer)
    await kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"{_CLIENT_ID} closes its idle connection to broker {A}, and reads on.")
    stage.say(f"connections.max.idle.ms is {_IDLE_MS} here, and nine minutes by default.")
    stage.expect(await kop.until_gone(_CLIENT_ID), "its node is gone")
    stage.step(f"The partitions move to broker {C}.")
    move_to_first_replica(cluster)
    await produce(stage, cluster, TOPIC, RECORDS)
    await read_up_to(2 * RECORDS, app, other)
    await kop.record()
    await stage.incident(cluster, finds={"KLP401": [_GROUP], "KLP407": [_GROUP]}, needs_logs=True)
