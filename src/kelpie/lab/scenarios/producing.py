"""Records for a scenario's topics."""

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.administering import ask_any
from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.stage import Stage
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.records import Record, write_batch, write_message_set


async def produce(stage: Stage, cluster: Cluster, topic: str, count: int) -> None:
    """So many records into every partition of a topic."""
    old = stage.persona == "0.9"
    timestamp = -1 if old else cluster.driver.clock.now()
    records = [Record(offset=at, timestamp=timestamp, value=b"%d" % at) for at in range(count)]
    batch = write_message_set(records, magic=0) if old else write_batch(records)
    leaders = await _leaders(cluster, topic)
    for partition, address in leaders.items():
        async with RawClient("producer", address) as client:
            data = [PartitionProduceData(index=partition, records=batch)]
            request = ProduceRequest(
                acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
            )
            answer = await client.ask(request, 1 if old else 7)
            code = answer.responses[0].partition_responses[0].error_code
            assert code == 0, f"{topic}-{partition} took no records: {code}"


async def _leaders(cluster: Cluster, topic: str) -> dict[int, str]:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    answer = await ask_any(cluster, asked, 0, "producer")
    brokers = {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
    return {each.partition_index: brokers[each.leader_id] for each in answer.topics[0].partitions}
