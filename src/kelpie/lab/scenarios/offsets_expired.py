"""A group is away for longer than its offsets are kept.

Committed offsets of a group that nobody is in are kept for
offsets.retention.minutes (7 days by default), or for as long as the commit
itself asked for: that is what an old client does here, so that it takes no
week. Then the coordinator removes them without a word, and the group with
them. When its consumer comes back, it begins at the end of the log.
"""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

NAME = "offsets-expired"
PERSONAS = ("4.3", "3.9", "2.8")

_GROUP, _OTHER, _TOPIC = "billing", "audit", "orders"
_PARTITION = TopicPartition(_TOPIC, 0)
_WITH_RETENTION = 4
"""The last version of OffsetCommit that carries the time for which offsets are kept."""


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(1, config={**QUICK_AND_SMALL, "offsets.retention.check.interval.ms": 100})
    cluster.create_topic(_TOPIC)
    await produce(stage, cluster, _TOPIC, 100)
    stage.step(f"Group {_OTHER} reads {_TOPIC} all the time; {_GROUP} has read 60 records, and is away.")
    other = Application(stage, cluster, _OTHER, [_TOPIC]).start()
    await other.until_at(_PARTITION, 100)
    code = await _commit(stage, cluster, 60, retention_ms=800)
    stage.expect(code == 0, f"{_GROUP} has committed offset 60, to be kept for 800 ms")
    await stage.calm(cluster)

    stage.step("Its time is over.")
    left = await stage.until(
        lambda: administering.committed(stage, cluster, _GROUP, _PARTITION), lambda at: at == -1
    )
    stage.expect(left == -1, f"the committed offset of {_GROUP} is {left}: there is none")
    await stage.incident(cluster, finds={"KLP302": [_GROUP]})

    stage.step(f"{_GROUP} comes back.")
    back = Application(stage, cluster, _GROUP, [_TOPIC], auto_offset_reset="latest").start()
    await back.until_at(_PARTITION, 100)
    began = back.began_at(_PARTITION)
    stage.expect(began == 100, f"it begins at offset {began}, and skips 40 records")


async def _commit(stage: Stage, cluster: Cluster, offset: int, retention_ms: int) -> int:
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name=_TOPIC, partitions=[row])]
    request = OffsetCommitRequest(group_id=_GROUP, retention_time_ms=retention_ms, topics=topics)
    async with await stage.connect(cluster.bootstrap_servers, "admin") as connection:
        response = await connection.ask(request, _WITH_RETENTION)
    code: int = response.topics[0].partitions[0].error_code
    return code
