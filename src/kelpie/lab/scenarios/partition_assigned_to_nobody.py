"""A topic gets partitions, and nobody reads them.

A consumer refreshes what it knows of topics every five minutes, unless
metadata.max.age.ms says otherwise. Here somebody has set it to a day. The topic
gets two more partitions: the group stays stable, and no member is assigned them.
"""

from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

NAME = "partition-assigned-to-nobody"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _TOPIC = "billing", "orders"
_DAY_MS = 24 * 3_600_000
_LONG_S = 400.0


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config=QUICK_AND_SMALL)
    cluster.create_topic(_TOPIC, 2)
    await produce(stage, cluster, _TOPIC, 20)
    stage.step(f"Group {_GROUP} reads {_TOPIC}, two partitions, with metadata.max.age.ms of a day.")
    reader = Application(
        stage,
        cluster,
        _GROUP,
        [_TOPIC],
        session_timeout_ms=30_000,
        max_poll_interval_ms=3_600_000,
        metadata_max_age_ms=_DAY_MS,
    ).start()
    await reader.until_at(TopicPartition(_TOPIC, 1), 20)
    await stage.calm(cluster, after_s=2.2)

    stage.step(f"{_TOPIC} gets two more partitions.")
    wanted = CreatePartitionsTopic(name=_TOPIC, count=4, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000, validate_only=False)
    async with await stage.connect(cluster.bootstrap_servers, "admin") as connection:
        code = (await connection.ask(request, 1)).results[0].error_code
    stage.expect(code == 0, f"{_TOPIC} has four partitions")
    await reader.stop_polling()  # Nothing more comes in.
    await stage.incident(cluster, finds={"KLP211": [_GROUP]}, seconds_of_history=_LONG_S)
    stage.expect(len(reader.assignment) == 2, "its member still has two")

    stage.step("The consumer starts again, and has all four.")
    await reader.close()
    again = Application(stage, cluster, _GROUP, [_TOPIC]).start()
    await again.until(lambda: len(again.assignment) == 4)
    stage.expect(len(again.assignment) == 4, f"it has {len(again.assignment)} partitions")
