"""With KoP: consumers of two groups on one host have the same client id.

KoP knows a consumer by host and client id. Both groups write the same node, and
the last one wins: what the first one reads on a new connection is counted to the
second.
"""

from kelpie.lab.scenarios.group_setup import RECORDS, SINCE_2_8, cluster_with, gather, new_member
from kelpie.lab.scenarios.kop import KopRecorder
from kelpie.lab.scenarios.stage import Stage

NAME = "shared-client-id"
PERSONAS = SINCE_2_8
_FIRST, _SECOND = "billing", "audit"
_BROKER = 1


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2})
    kop = KopRecorder(stage, cluster)
    first = new_member(stage, cluster, _FIRST, "rdkafka")
    stage.step(f"A consumer of {_FIRST} reads. Its client id is rdkafka, the default of its library.")
    kop.finds_coordinator(first, _BROKER)
    await gather(cluster, first)
    await kop.reads(first, _BROKER, RECORDS)
    kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"On the same host, a consumer of {_SECOND} starts, with the same client id.")
    second = new_member(stage, cluster, _SECOND, "rdkafka")
    kop.finds_coordinator(second, _BROKER)
    await gather(cluster, second)
    await kop.reads(second, _BROKER, RECORDS)
    stage.expect(kop.group_of("rdkafka") == _SECOND, f"the node of both names {_SECOND}")
    kop.record()
    await stage.incident(cluster, finds={"KLP404": [_FIRST, _SECOND]}, needs_logs=True)
