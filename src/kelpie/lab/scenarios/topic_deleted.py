"""A topic that a group reads is deleted while its consumer runs.

A group reads orders and payments. Somebody deletes payments. Kafka removes the
group's offsets in it, and its member still subscribes to a topic that is not
there.
"""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.delete_topics import DeleteTopicsRequest

NAME = "topic-deleted"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _KEPT, _DELETED = "billing", "orders", "payments"


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    partitions = [TopicPartition(topic, 0) for topic in (_KEPT, _DELETED)]
    for partition in partitions:
        cluster.create_topic(partition.topic)
        await produce(stage, cluster, partition.topic, 40)
    stage.step(f"Group {_GROUP} reads {_KEPT} and {_DELETED}, and commits.")
    reader = Application(stage, cluster, _GROUP, [_KEPT, _DELETED]).start()
    for partition in partitions:
        await reader.until_at(partition, 40)
    await stage.calm(cluster, after_s=2.2)

    stage.step(f"Somebody deletes {_DELETED}.")
    code = await delete_topic(stage, cluster, _DELETED)
    stage.expect(code == 0, "the broker deletes it")
    left = await administering.committed(stage, cluster, _GROUP, partitions[1])
    stage.expect(left < 0, "with the topic, the group's offset is gone")
    await stage.incident(cluster, finds={"KLP315": [_GROUP]})
    await reader.close()


async def delete_topic(stage: Stage, cluster: Cluster, topic: str) -> int:
    """As kafka-topics --delete does it. The error code."""
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
    async with await stage.connect(cluster.bootstrap_servers, "admin") as connection:
        response = await connection.ask(request, 5)
    error: int = response.responses[0].error_code
    return error
