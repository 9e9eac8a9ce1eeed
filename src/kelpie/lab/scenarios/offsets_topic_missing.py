"""The offsets topic is to have three replicas, and one broker is there.

Kafka makes __consumer_offsets when the first consumer looks for its
coordinator, with offsets.topic.replication.factor replicas. Since 0.11 it
does not make do with fewer: the lookup is answered with error 15, now and
the next time, and nothing but a line in the broker's log tells why.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.application import QUICK
from kelpie.lab.scenarios.coordinated_groups import lookup
from kelpie.lab.scenarios.stage import Stage

NAME = "offsets-topic-missing"
PERSONAS = ("4.3", "3.9", "2.8")
"""Kafka 0.9 takes as many replicas as there are brokers."""


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(3, replication=3, offsets_partitions=4, config=QUICK)
    stage.step("Three brokers, new; no group has been used yet, so there is no __consumer_offsets.")
    await stage.calm(cluster)

    stage.step("Brokers 2 and 3 are shut down. Then the first consumer looks for its coordinator.")
    await cluster.stop(2)
    await cluster.stop(3)
    for _ in range(3):
        answer = await lookup(stage, cluster, 1, "billing")
    stage.expect(
        answer.error == ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"three lookups later the answer is still error {answer.error}",
    )
    await stage.incident(cluster, finds={"KLP104": []})

    stage.step("Brokers 2 and 3 come back.")
    await cluster.start(2)
    await cluster.start(3)
    answer = await stage.until(lambda: lookup(stage, cluster, 1, "billing"), lambda answer: answer.error == 0)
    stage.expect(answer.error == 0, f"the topic is there: the coordinator is broker {answer.node_id}")
