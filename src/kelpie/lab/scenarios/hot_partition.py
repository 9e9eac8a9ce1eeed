"""One partition of a topic gets most of its records, and its member cannot keep up.

A key is far more frequent than the others. All records with this key go to one
partition; the group reads the other two to the end, and falls behind there.
"""

from kelpie.lab.scenarios.application import QUICK_AND_SMALL
from kelpie.lab.scenarios.slow_reading import slow_reader, write_slowly
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

NAME = "hot-partition"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _TOPIC = "billing", "orders"
_LONG_S = 720.0


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    cluster.create_topic(_TOPIC, 3)
    stage.step(f"Three members of {_GROUP} read {_TOPIC}, three partitions.")
    readers = [slow_reader(stage, cluster, _GROUP, _TOPIC).start() for _ in range(3)]
    write_slowly(stage, cluster, _TOPIC, {0: 20, 1: 1, 2: 1})
    await readers[0].until(lambda: all(len(reader.assignment) == 1 for reader in readers))
    hot = TopicPartition(_TOPIC, 0)
    hit = next(reader for reader in readers if hot in reader.assignment)
    await hit.until_at(hot, 20)
    await stage.calm(cluster, after_s=6.0)

    stage.step("Each record takes half a second from now on: too long where twenty come in five seconds.")
    for reader in readers:
        reader.seconds_per_record = 0.5
    await stage.incident(
        cluster,
        finds={"KLP318": [_GROUP], "KLP319": [_GROUP]},
        after_s=20.0,
        seconds_of_history=_LONG_S,
    )
