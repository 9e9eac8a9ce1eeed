"""What a repair asks of the controller: whether it took all that was asked, and moves of replicas.

Kafka 2.4 and later move replicas on request: they are handed to the controller, watched, cancelled.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kelpie.client.admin import controller
from kelpie.client.admin.rows import Reassignment, Rows
from kelpie.client.nodes import Nodes
from kelpie.errors import describe, info
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.applying import StepFailed

_PAUSE_S = 0.2


async def ongoing_moves(nodes: Nodes, partitions: Iterable[int]) -> dict[int, Reassignment]:
    """Moves of the offsets topic, by partition. Raises StepFailed, ClientError."""
    names = [TopicPartition(OFFSETS_TOPIC, number) for number in partitions]
    rows = await controller.list_reassignments(nodes, names)
    _check_request("The moves under way cannot be listed", rows)
    return {row.partition: row for row in rows}


async def begin_moves(nodes: Nodes, goals: Mapping[int, Sequence[int] | None]) -> None:
    """Hands moves of the offsets topic over; None cancels one. Raises StepFailed, ClientError."""
    replicas = {TopicPartition(OFFSETS_TOPIC, number): goal for number, goal in goals.items()}
    check_partitions(len(goals), await controller.reassign(nodes, replicas))


async def wait_for_moves(nodes: Nodes, partitions: Sequence[int], limit_s: float) -> dict[int, Reassignment]:
    """Waits until none of these is moving, or the time is over; returns those that still are."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while (left := await ongoing_moves(nodes, partitions)) and loop.time() + _PAUSE_S <= deadline:
        await asyncio.sleep(_PAUSE_S)
    return left


def check_partitions(asked: int, rows: Rows[Any]) -> None:
    """Raises StepFailed if the controller refused the request, or some of its partitions."""
    _check_request("The controller refuses", rows)
    refused = [f"{row.name}: {_in_words(row.error, row.message)}" for row in rows if row.error]
    if refused:
        raise StepFailed(
            f"The controller took {asked - len(refused)} of {asked} partitions, and refused the others; the "
            f"first: {refused[0]}"
        )


def _check_request(what: str, rows: Rows[Any]) -> None:
    for answer in rows.refused:
        raise StepFailed(f"{what}: {_in_words(answer.error, answer.message)}")


def _in_words(error: int, message: str) -> str:
    return f"{describe(error)}. {message or info(error).meaning}"
