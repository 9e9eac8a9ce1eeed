"""A topic is deleted and created again, and a consumer commits its old position.

A group has read 100 records. Somebody deletes the topic and creates it again;
Kafka removes the group's offsets with it. A consumer that still had the partition
commits its old position once more, as librdkafka does. The new topic has 30
records: the offset lies beyond its end. Whoever moves the group to the end of the
log loses these 30.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application, CommitPolicy
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.topic_deleted import delete_topic
from kelpie.model.names import TopicPartition

NAME = "topic-created-again"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _TOPIC = "billing", "orders"
_PARTITION = TopicPartition(_TOPIC, 0)


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    cluster.create_topic(_TOPIC)
    await produce(stage, cluster, _TOPIC, 100)
    stage.step(f"Group {_GROUP} reads the 100 records of {_PARTITION}.")
    reader = Application(stage, cluster, _GROUP, [_TOPIC], commits=CommitPolicy.ON_CLOSE).start()
    await reader.until_at(_PARTITION, 100)
    await reader.close()
    await stage.calm(cluster)

    stage.step(f"{_TOPIC} is deleted and created again, and gets 30 records.")
    await delete_topic(stage, cluster, _TOPIC)
    cluster.create_topic(_TOPIC)
    await produce(stage, cluster, _TOPIC, 30)
    left = await administering.committed(stage, cluster, _GROUP, _PARTITION)
    stage.expect(left < 0, "with the topic, the group's offset is gone")
    stage.step("A consumer that had the partition commits its old position.")
    error = await administering.commit(stage, cluster, _GROUP, _PARTITION, 100)
    stage.expect(not error, f"the coordinator takes offset 100, though the log of {_PARTITION} ends at 30")
    await stage.incident(cluster, finds={"KLP314": [_GROUP]})

    stage.step("Its consumer starts again, with auto.offset.reset=latest.")
    again = Application(stage, cluster, _GROUP, [_TOPIC], auto_offset_reset="latest").start()
    await again.until(lambda: again.position(_PARTITION) == 30)
    stage.expect(again.read == 0, f"it is refused, goes to the end, and reads {again.read} of 30 records")
