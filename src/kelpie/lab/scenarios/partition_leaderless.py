"""A broker dies, and one partition of a topic has no leader.

Three partitions with one replica each, on three brokers. When one broker dies,
the group's offsets are safe on the others, and two partitions go on. The third
can be neither read nor written: the group looks alive, and its lag does not even
grow.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

NAME = "partition-leaderless"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _OTHER, _TOPIC, _SAFE = "billing", "audit", "orders", "payments"


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(3, config=QUICK_AND_SMALL)
    cluster.create_topic(_TOPIC, assignment={0: (1,), 1: (2,), 2: (3,)})
    cluster.create_topic(_SAFE, assignment={0: (1, 2)})
    stage.step(f"Group {_GROUP} reads {_TOPIC}, one partition on each broker; {_OTHER} reads {_SAFE}.")
    await produce(stage, cluster, _TOPIC, 30)
    await produce(stage, cluster, _SAFE, 30)
    reader = Application(stage, cluster, _GROUP, [_TOPIC]).start()
    other = Application(stage, cluster, _OTHER, [_SAFE]).start()
    await reader.until_at(TopicPartition(_TOPIC, 2), 30)
    await other.until_at(TopicPartition(_SAFE, 0), 30)
    await stage.calm(cluster)

    stage.step("Broker 3 dies.")
    await cluster.kill(3)
    await cluster.wait_until(lambda state: state["topics"][_TOPIC][2]["leader"] < 0)
    at = await administering.committed(stage, cluster, _GROUP, TopicPartition(_TOPIC, 2))
    stage.expect(at == 30, f"the committed offset of {_GROUP} in {_TOPIC}-2 is {at}, as before")
    await stage.incident(cluster, finds={"KLP311": [_GROUP]})

    stage.step("Broker 3 comes back.")
    await cluster.start(3)
    await produce(stage, cluster, _TOPIC, 10)
    position = await reader.until_at(TopicPartition(_TOPIC, 2), 40)
    stage.expect(position == 40, f"{_GROUP} has come to {position} in {_TOPIC}-2")
