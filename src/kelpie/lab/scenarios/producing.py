"""Records for a scenario's topics."""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.administering import leaders
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.records import Record, write_batch, write_message_set

_PRODUCER = "producer"


async def produce(stage: Stage, cluster: Cluster, topic: str, count: int) -> None:
    """So many records into every partition of a topic."""
    old = stage.persona == "0.9"
    timestamp = -1 if old else cluster.driver.clock.now()
    records = [Record(offset=at, timestamp=timestamp, value=b"%d" % at) for at in range(count)]
    batch = write_message_set(records, magic=0) if old else write_batch(records)
    for partition, address in (await leaders(stage, cluster, topic, _PRODUCER)).items():
        await write(stage, address, partition, batch, _PRODUCER, version=1 if old else 7)


async def write(
    stage: Stage,
    address: str,
    partition: TopicPartition,
    batch: bytes,
    client_id: str,
    *,
    version: int = 7,
    transactional_id: str | None = None,
) -> None:
    """A batch to the leader of a partition."""
    data = [PartitionProduceData(index=partition.partition, records=batch)]
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=partition.topic, partition_data=data)],
    )
    async with await stage.connect(address, client_id) as connection:
        response = await connection.ask(request, version)
    code = response.responses[0].partition_responses[0].error_code
    assert code == 0, f"{partition} took no records: {code}"
