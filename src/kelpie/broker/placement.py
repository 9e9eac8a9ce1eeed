"""Where the replicas of a new topic go."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from kelpie.broker.declined import Declined
from kelpie.broker.image import Image
from kelpie.errors import ErrorCode

MOST_NEW_PARTITIONS = 10_000
"""Of one request: Kafka's controller writes no more records at a time (MAX_RECORDS_PER_USER_OP)."""


def spread(image: Image, partitions: int, copies: int, *, first: int) -> list[tuple[int, ...]]:
    """Round the brokers, each partition beginning one further; racks take turns where they are known.

    `first` turns the beginning, so that topics with few partitions do not all begin at the same broker.
    """
    if partitions < 1:
        raise Declined(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    if copies < 1:
        raise Declined(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    alive = _by_rack(image)
    if copies > len(alive):
        raise Declined(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {copies} time(s): The target replication factor of {copies} "
            f"cannot be reached because only {len(alive)} broker(s) are registered or some brokers have all "
            "their log directories cordoned.",
        )
    return [
        tuple(alive[(first + partition + copy) % len(alive)] for copy in range(copies))
        for partition in range(partitions)
    ]


def given(assignment: Mapping[int, Sequence[int]], image: Image) -> list[tuple[int, ...]]:
    """What the client named, partition by partition."""
    if sorted(assignment) != list(range(len(assignment))):
        raise Declined(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    rows = [tuple(assignment[index]) for index in sorted(assignment)]
    for row in rows:
        check(row, image)
        if len(row) != len(rows[0]):
            raise Declined(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(row)} replica(s), but this "
                f"is not consistent with previous partitions, which have {len(rows[0])} replica(s).",
            )
    return rows


def check(replicas: Sequence[int], image: Image) -> None:
    """The rules for the replicas of one partition, in the order and words of ReplicationControlManager."""
    problem = "an empty replica list." if not replicas else None
    for at, node in enumerate(sorted(replicas)):
        if node not in image.brokers:
            problem = problem or f"broker {node}, but no such broker is registered."
        elif at and node == sorted(replicas)[at - 1]:
            problem = problem or f"the broker {node} more than once."
    if problem:
        raise Declined(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {problem}"
        )


def _by_rack(image: Image) -> list[int]:
    racks: dict[str | None, list[int]] = {}
    for node in sorted(image.alive):
        racks.setdefault(image.brokers[node].rack, []).append(node)
    turns = zip_longest(*racks.values())
    return [node for turn in turns for node in turn if node is not None]
