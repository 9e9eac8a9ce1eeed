"""Reads the partitions that a ZooKeeper consumer owns, from their leaders.

It is Kelpie's consumer of today's protocol, without a group: that knows leaders and their changes, and what
to do with an offset that is out of range. It speaks to brokers as to Kafka 0.8 (Metadata, ListOffsets and
Fetch in version 0), so that nothing is negotiated.
"""

import asyncio
from collections.abc import Sequence, Set

from kelpie.client.address import Address
from kelpie.client.consumer import Consumer
from kelpie.client.memory import Memory
from kelpie.client.settings import Settings
from kelpie.consumer.effects import ConsumedRecord
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.model.names import TopicPartition
from kelpie.zookeeper.effects import StartFetching


class PartitionReader:
    """Reads from `StartFetching` to `StopFetching`. A new one begins after each rebalance."""

    def __init__(self, start: StartFetching, client_id: str, reset: ResetPolicy) -> None:
        addresses = tuple(Address(broker.host, broker.port) for broker in start.brokers)
        self._consumer = Consumer(
            Settings(addresses, client_id),
            partitions=start.positions,
            memory=Memory(is_kafka_0_8=True),
            auto_offset_reset=reset,
        )
        for partition, position in start.positions.items():
            if position.offset >= 0:
                self._consumer.seek(partition, position.offset)
        self._left: list[ConsumedRecord] = []
        self._ending: asyncio.Task[None] | None = None

    async def poll(self, limit_s: float, most: int) -> Sequence[ConsumedRecord]:
        """Records, as far as some come in time; none when it is stopped. Raises ConsumerError."""
        if not self._left:
            try:
                self._left = await self._consumer.poll(limit_s)
            except RuntimeError:
                if self._ending is None:
                    raise
        records, self._left = self._left[:most], self._left[most:]
        return () if self._ending is not None else records

    def stop(self) -> "asyncio.Task[None]":
        """No record comes any more. The task ends when all connections are closed."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._consumer.crash())
        return self._ending

    def beginnings(self, handed_out: Set[TopicPartition]) -> dict[TopicPartition, int]:
        """Positions of partitions of which no record has been delivered; `handed_out` have just been."""
        waiting = {TopicPartition(record.topic, record.partition) for record in self._left}
        positions = self._consumer.positions.items()
        return {key: offset for key, offset in positions if key not in waiting and key not in handed_out}
