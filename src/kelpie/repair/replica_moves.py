"""Replicas moved through the API (Kafka 2.4 and later): handed to the controller, watched, cancelled."""

import asyncio
from collections.abc import Mapping, Sequence

from kelpie.client.admin import controller
from kelpie.client.admin.rows import Reassignment
from kelpie.client.nodes import Nodes
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.controller import check_partitions, check_request

_PAUSE_S = 0.2


class Mover:
    """Moves replicas of the offsets topic."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    async def available(self) -> bool:
        """Whether the cluster knows the request. Raises ClientError if no broker can be asked."""
        return await controller.can_reassign(self._nodes)

    async def ongoing(self, partitions: Sequence[int]) -> dict[int, Reassignment]:
        """Raises StepFailed, ClientError."""
        names = [TopicPartition(OFFSETS_TOPIC, number) for number in partitions]
        rows = await controller.list_reassignments(self._nodes, names)
        check_request("The moves under way cannot be listed", rows)
        return {row.partition: row for row in rows}

    async def begin(self, goals: Mapping[int, Sequence[int] | None]) -> None:
        """Hands moves to the controller; None cancels one. Raises StepFailed, ClientError."""
        replicas = {TopicPartition(OFFSETS_TOPIC, number): goal for number, goal in goals.items()}
        check_partitions(len(goals), await controller.reassign(self._nodes, replicas))

    async def wait(self, partitions: Sequence[int], limit_s: float) -> dict[int, Reassignment]:
        """Waits until none of these is moving, or the time is over; returns those that still are."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        while True:
            left = await self.ongoing(partitions)
            if not left or loop.time() + _PAUSE_S > deadline:
                return left
            await asyncio.sleep(_PAUSE_S)
