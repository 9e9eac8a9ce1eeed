"""Records for tests, produced to any release over Kelpie's own connections."""

import asyncio
from collections.abc import Sequence

from kelpie.client.address import Address
from kelpie.client.connection import Connection
from kelpie.client.memory import Memory
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.model.names import TopicPartition
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.records import Record, write_batch, write_message_set

_PATIENCE_S = 60.0


_memories: dict[tuple[Address, ...], Memory] = {}


def speak_as_kafka_0_8(settings: Settings) -> None:
    """Brokers before 0.9 cannot be asked which versions they speak."""
    _memories[settings.bootstrap] = Memory(is_kafka_0_8=True)


async def _connect(address: Address, settings: Settings) -> Connection:
    """It takes a second to find out that a broker is of Kafka 0.9: that is remembered."""
    memory = _memories.setdefault(settings.bootstrap, Memory())
    return await open_connection(address, settings, memory=memory)


async def leader_of(settings: Settings, partition: TopicPartition) -> Address:
    """Where the partition is led; waits for a leader. Asking creates a topic where the broker is set so."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_S
    while asyncio.get_running_loop().time() < deadline:
        async with await _connect(settings.bootstrap[0], settings) as connection:
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=partition.topic)])
            answer = await connection.ask(asked)
            addresses = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
            for row in answer.topics[0].partitions:
                if row.partition_index == partition.partition and row.leader_id in addresses:
                    return addresses[row.leader_id]
        await asyncio.sleep(0.05)
    raise AssertionError(f"{partition} has no leader")


async def produce(
    settings: Settings, partition: TopicPartition, values: Sequence[str], *, acks: int = -1
) -> int:
    """Append these in one request; the offset of the first."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_S
    while True:
        address = await leader_of(settings, partition)
        async with await _connect(address, settings) as connection:
            version = connection.versions.pick(ProduceRequest, at_most=8)
            rows = [
                Record(at, 1_700_000_000_000 + at, value=value.encode()) for at, value in enumerate(values)
            ]
            magic = 2 if version >= 3 else max(0, version - 1)
            records = write_batch(rows) if magic == 2 else write_message_set(rows, magic=magic)
            data = PartitionProduceData(index=partition.partition, records=records)
            request = ProduceRequest(
                acks=acks,
                timeout_ms=10_000,
                topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
            )
            answer = await connection.ask(request, version, 20.0)
        (row,) = answer.responses[0].partition_responses
        if not row.error_code:
            return int(row.base_offset)
        assert asyncio.get_running_loop().time() < deadline, f"not produced: {row.error_code}"
        await asyncio.sleep(0.05)
