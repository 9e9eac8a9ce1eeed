"""A topic grows, and the first records of its new partitions are read by nobody.

A group reads a topic of two partitions, and its consumers begin at the end
where nothing is committed (auto.offset.reset=latest, the default). The topic
gets two more partitions, and producers write to them at once. When the
consumers notice and take the new partitions over, nothing is committed there:
they begin at the end and skip what was written before.
"""

from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

NAME = "no-committed-offset"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _TOPIC = "billing", "orders"


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    cluster.create_topic(_TOPIC, 2)
    reader = Application(stage, cluster, _GROUP, [_TOPIC], auto_offset_reset="latest")
    stage.step(f"Group {_GROUP} reads {_TOPIC}, two partitions, and commits.")
    reader.start()
    await reader.until_at(TopicPartition(_TOPIC, 1), 0)
    await produce(stage, cluster, _TOPIC, 20)
    await reader.until_at(TopicPartition(_TOPIC, 1), 20)
    await stage.calm(cluster, after_s=2.2)

    stage.step(f"{_TOPIC} gets two more partitions, and 50 records are written to each.")
    wanted = CreatePartitionsTopic(name=_TOPIC, count=4, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000, validate_only=False)
    async with await stage.connect(cluster.bootstrap_servers, "admin") as connection:
        code = (await connection.ask(request, 1)).results[0].error_code
    await produce(stage, cluster, _TOPIC, 50)
    stage.expect(code == 0, f"{_TOPIC} has four partitions")
    await stage.incident(cluster, finds={"KLP301": [_GROUP]})

    stage.step("The consumer starts again, and takes all four over.")
    await reader.close()
    again = Application(stage, cluster, _GROUP, [_TOPIC], auto_offset_reset="latest").start()
    new = TopicPartition(_TOPIC, 3)
    await again.until_at(new, 50)
    stage.expect(
        again.began_at(new) == 50, f"it begins at offset {again.began_at(new)} of {new}: 50 are skipped"
    )
