"""With KoP: consumers of two groups on one host have the same client id.

KoP knows a consumer by host and client id. Both groups write the same node, and
the last one wins: what the first one reads on a new connection is counted to the
second.
"""

from kelpie.lab.scenarios.group_setup import SINCE_2_8, gather, new_member
from kelpie.lab.scenarios.kop import Recording, counting_cluster
from kelpie.lab.scenarios.stage import Stage

NAME = "shared-client-id"
PERSONAS = SINCE_2_8
_FIRST, _SECOND = "billing", "audit"


async def run(stage: Stage) -> None:
    cluster = await counting_cluster(stage)
    kop = Recording(stage, cluster)
    first = new_member(stage, cluster, _FIRST, "rdkafka")
    stage.step(f"A consumer of {_FIRST} reads. Its client id is rdkafka, the default of its library.")
    await gather(cluster, first)
    await kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"On the same host, a consumer of {_SECOND} starts, with the same client id.")
    second = new_member(stage, cluster, _SECOND, "rdkafka")
    await gather(cluster, second)
    stage.expect(await kop.group_of("rdkafka") == _SECOND, f"the node of both names {_SECOND}")
    await kop.record()
    await stage.incident(cluster, finds={"KLP404": [_FIRST, _SECOND]}, needs_logs=True)
