from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.questions.question import Question
from kelpie.wire.api.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kelpie.wire.structs import TopicIdPartitions

OwnedIds = tuple[tuple[bytes, tuple[int, ...]], ...]
"""Partitions by topic id, sorted."""


@dataclass(frozen=True, slots=True)
class Beat:
    error: int
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    interval_ms: int = 0
    assignment: OwnedIds | None = None
    """None: as it was."""


@dataclass(frozen=True, slots=True)
class AskNewerHeartbeat(Question[Beat]):
    """Join (epoch 0), stay, leave (−1; −2 for a while), and tell what is owned: all in one (KIP-848).

    A field that is None has not changed since the last heartbeat.
    """

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    server_assignor: str | None = None
    owned: OwnedIds | None = None

    api = ConsumerGroupHeartbeatRequest

    def request(self, version: int) -> ConsumerGroupHeartbeatRequest:
        # Before version 1 the coordinator chooses the member id.
        member_id = "" if version == 0 and self.epoch == 0 else self.member_id
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            subscribed_topic_names=None if self.topics is None else list(self.topics),
            server_assignor=self.server_assignor,
            topic_partitions=None
            if self.owned is None
            else [
                TopicIdPartitions(topic_id=topic_id, partitions=list(numbers))
                for topic_id, numbers in self.owned
            ],
        )

    def answer(self, response: ConsumerGroupHeartbeatResponse, _version: int) -> Beat:
        assignment = None
        if response.assignment is not None:
            rows = (
                (row.topic_id, tuple(sorted(row.partitions))) for row in response.assignment.topic_partitions
            )
            assignment = tuple(sorted(rows))
        return Beat(
            response.error_code,
            response.error_message,
            response.member_id,
            response.member_epoch,
            response.heartbeat_interval_ms,
            assignment,
        )

    def tell(self, answer: Beat) -> str:
        if answer.error:
            return describe(answer.error) + (f": {answer.message}" if answer.message else "")
        epoch = f"epoch {answer.epoch}"
        if answer.assignment is None:
            return epoch
        return f"{epoch}, assigned {sum(len(numbers) for _, numbers in answer.assignment)} partitions"

    def __str__(self) -> str:
        return f"ConsumerGroupHeartbeat({self.group_id}, member {self.member_id}, epoch {self.epoch})"
