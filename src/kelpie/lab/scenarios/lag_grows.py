"""A group is slower than its producers, and falls behind.

Producers write four records a second. The consumer needs a second for each. It is
alive, it moves, it commits; its lag grows all the same.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL
from kelpie.lab.scenarios.slow_reading import slow_reader, write_slowly
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

NAME = "lag-grows"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _TOPIC = "billing", "orders"
_PARTITION = TopicPartition(_TOPIC, 0)
_LONG_S = 720.0


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    cluster.create_topic(_TOPIC)
    stage.step(f"Group {_GROUP} reads {_TOPIC}, four records a second.")
    reader = slow_reader(stage, cluster, _GROUP, _TOPIC).start()
    write_slowly(stage, cluster, _TOPIC, {0: 20})
    await reader.until_at(_PARTITION, 20)
    await stage.calm(cluster, after_s=6.0)

    stage.step("It becomes slow: a second for each record.")
    reader.seconds_per_record = 1.0
    await stage.incident(cluster, finds={"KLP318": [_GROUP]}, after_s=20.0, seconds_of_history=_LONG_S)
    at = await administering.committed(stage, cluster, _GROUP, _PARTITION)
    end = (await administering.log_ends(stage, cluster, _PARTITION)).latest
    stage.expect(at <= end, f"it has come to {at}, and the log ends at {end}")
