"""Replicas moved through the API (Kafka 2.4 and later): handed to the controller, watched, cancelled."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.controller import LIMIT_S, check, check_each, controller_of, said
from kelpie.wire.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kelpie.wire.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kelpie.wire.structs import TopicPartitionIndexes

_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class OngoingMove:
    """A move that has not ended."""

    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def goal(self) -> tuple[int, ...]:
        return tuple(node for node in self.replicas if node not in self.removing)


class Mover:
    """Moves replicas of the offsets topic."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    async def available(self) -> bool:
        """Whether the cluster knows the request. Raises ClientError if nobody can be asked."""
        return (await self._nodes.versions(await controller_of(self._nodes))).speaks(
            AlterPartitionReassignmentsRequest
        )

    async def ongoing(self, partitions: Sequence[int]) -> dict[int, OngoingMove]:
        """Raises StepFailed, ClientError."""
        request = ListPartitionReassignmentsRequest(
            timeout_ms=int(LIMIT_S * 1000),
            topics=[TopicPartitionIndexes(name=OFFSETS_TOPIC, partition_indexes=list(partitions))],
        )
        response: ListPartitionReassignmentsResponse = await self._nodes.ask(
            await controller_of(self._nodes), request
        )
        check("The moves under way cannot be listed", response.error_code, response.error_message)
        return {
            it.partition_index: OngoingMove(
                it.partition_index,
                tuple(it.replicas),
                tuple(it.adding_replicas),
                tuple(it.removing_replicas),
            )
            for topic in response.topics
            for it in topic.partitions
        }

    async def begin(self, goals: Mapping[int, Sequence[int] | None]) -> None:
        """Hands moves to the controller; None cancels one. Raises StepFailed, ClientError."""
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=int(LIMIT_S * 1000),
            topics=[
                ReassignableTopic(
                    name=OFFSETS_TOPIC,
                    partitions=[
                        ReassignablePartition(
                            partition_index=partition, replicas=None if goal is None else list(goal)
                        )
                        for partition, goal in sorted(goals.items())
                    ],
                )
            ],
        )
        response: AlterPartitionReassignmentsResponse = await self._nodes.ask(
            await controller_of(self._nodes), request, limit_s=LIMIT_S
        )
        check("The controller refuses", response.error_code, response.error_message)
        refused = [
            f"{OFFSETS_TOPIC}-{it.partition_index}: {said(it.error_code, it.error_message)}"
            for topic in response.responses
            for it in topic.partitions
            if it.error_code not in (ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        ]
        check_each(len(goals), refused)

    async def wait(self, partitions: Sequence[int], limit_s: float) -> dict[int, OngoingMove]:
        """Comes back when none of these is moving, or when the time is over: with those that still are."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        while True:
            left = await self.ongoing(partitions)
            if not left or loop.time() + _PAUSE_S > deadline:
                return left
            await asyncio.sleep(_PAUSE_S)
