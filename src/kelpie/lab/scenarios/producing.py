"""Records for a scenario's topics."""

from kelpie.client.nodes import Nodes
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.questions.metadata import AskMetadata
from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.records import Record, write_batch, write_message_set


async def produce(stage: Stage, cluster: Cluster, topic: str, count: int) -> None:
    """So many records into every partition of a topic that has a leader."""
    old = stage.persona == "0.9"
    timestamp = -1 if old else cluster.driver.clock.now()
    records = [Record(offset=at, timestamp=timestamp, value=b"%d" % at) for at in range(count)]
    batch = write_message_set(records, magic=0) if old else write_batch(records)
    async with await stage.nodes(cluster, "producer") as nodes:
        for partition, leader in (await leaders(nodes, topic)).items():
            await write(nodes, leader, partition, batch, version=1 if old else 7)


async def leaders(nodes: Nodes, topic: str) -> dict[TopicPartition, int]:
    """The leader of each partition; partitions without one are left out."""
    facts = await nodes.put_any(AskMetadata((topic,)))
    return {
        TopicPartition(topic, number): partition.leader
        for number, partition in facts.topics[topic].partitions.items()
        if partition.leader is not None and partition.leader in facts.brokers
    }


async def write(
    nodes: Nodes,
    leader: int,
    partition: TopicPartition,
    batch: bytes,
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
    response = await nodes.ask(leader, request, version)
    code = response.responses[0].partition_responses[0].error_code
    assert code == 0, f"{partition} took no records: {code}"
