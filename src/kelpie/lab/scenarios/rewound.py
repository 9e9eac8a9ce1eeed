"""Somebody sets a group back to the beginning.

A group has read everything, and its consumers are stopped. Somebody resets its
offsets, as kafka-consumer-groups --reset-offsets --to-earliest does: ordinary
commits, but without a member and without a leader epoch. When the consumers
start, they read everything once more.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application, CommitPolicy
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

NAME = "rewound"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _OTHER, _TOPIC = "billing", "audit", "orders"
_PARTITION = TopicPartition(_TOPIC, 0)


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    cluster.create_topic(_TOPIC)
    await produce(stage, cluster, _TOPIC, 200)
    stage.step(f"Groups {_GROUP} and {_OTHER} read the 200 records of {_PARTITION}.")
    reader = Application(stage, cluster, _GROUP, [_TOPIC], commits=CommitPolicy.ON_CLOSE).start()
    other = Application(stage, cluster, _OTHER, [_TOPIC]).start()
    await reader.until_at(_PARTITION, 200)
    await other.until_at(_PARTITION, 200)
    await stage.calm(cluster)

    stage.step(f"{_GROUP} stops, and somebody resets it to the beginning.")
    await reader.close()
    code = await administering.commit(stage, cluster, _GROUP, _PARTITION, 0)
    stage.expect(code == 0, f"{_GROUP} stands at 0")
    await stage.incident(cluster, finds={"KLP308": [_GROUP]})

    stage.step("Its consumer starts again.")
    again = Application(stage, cluster, _GROUP, [_TOPIC]).start()
    await again.until_at(_PARTITION, 200)
    stage.expect(again.read == 200, f"it reads {again.read} records once more")
