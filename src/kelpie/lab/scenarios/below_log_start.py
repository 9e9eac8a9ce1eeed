"""Records are deleted before a group has read them.

A group is away while producers write on. The oldest records are deleted, here
by hand, as retention does it one day. Its committed offset now lies before the
beginning of the log: what is between is lost to it. When its consumer starts,
the broker refuses the offset, and the reset policy decides where to go on.
"""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application, CommitPolicy
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

NAME = "below-log-start"
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
    await stage.calm(cluster)

    stage.step("It stops. 400 records come in, and the first 300 of all are deleted.")
    await reader.close()
    await produce(stage, cluster, _TOPIC, 400)
    begins = await _delete_records(stage, cluster, before=300)
    stage.expect(begins == 300, f"the log of {_PARTITION} begins at {begins}, {_GROUP} stands at 100")
    await stage.incident(cluster, finds={"KLP303": [_GROUP]})

    stage.step("Its consumer starts again.")
    again = Application(stage, cluster, _GROUP, [_TOPIC]).start()
    await again.until_at(_PARTITION, 500)
    stage.expect(again.read == 200, f"it is refused, goes on at 300, and reads {again.read} of 400 records")


async def _delete_records(stage: Stage, cluster: Cluster, before: int) -> int:
    """The offset at which the log begins after that."""
    topic = DeleteRecordsTopic(
        name=_TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=before)]
    )
    async with await stage.connect(cluster.bootstrap_servers, "admin") as connection:
        response = await connection.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 1)
    low_watermark: int = response.topics[0].partitions[0].low_watermark
    return low_watermark
