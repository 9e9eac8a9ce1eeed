"""What the coordinator says of a group: DescribeGroups, or, of the newer protocol, ConsumerGroupDescribe."""

from dataclasses import dataclass
from typing import Any

from kelpie.assignors import topics_in
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.questions.question import Question
from kelpie.wire.api.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kelpie.wire.api.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kelpie.wire.api.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE, partitions_in
from kelpie.wire.malformed import Malformed

_NO_SUCH_GROUP = "Dead"


@dataclass(frozen=True, slots=True)
class GroupDescription:
    error: int
    state: str = ""
    protocol: str = ""
    """The assignor."""
    protocol_type: str = PROTOCOL_TYPE
    members: int = 0
    topics: frozenset[str] = frozenset()
    assigned: frozenset[TopicPartition] = frozenset()

    @property
    def exists(self) -> bool:
        return self.state != _NO_SUCH_GROUP and self.error != ErrorCode.GROUP_ID_NOT_FOUND

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type in ("", PROTOCOL_TYPE)


@dataclass(frozen=True, slots=True)
class AskGroup(Question[GroupDescription]):
    group_id: str

    api = DescribeGroupsRequest

    def request(self, version: int) -> DescribeGroupsRequest:
        del version
        return DescribeGroupsRequest(groups=[self.group_id])

    def answer(self, response: DescribeGroupsResponse, version: int) -> GroupDescription:
        del version
        if not response.groups:
            return GroupDescription(ErrorCode.UNKNOWN_SERVER_ERROR)
        (group,) = response.groups
        topics: set[str] = set()
        assigned: set[TopicPartition] = set()
        if group.protocol_type == PROTOCOL_TYPE:
            for member in group.members:
                topics.update(_read(topics_in, member.member_metadata))
                assigned.update(_read(partitions_in, member.member_assignment))
        return GroupDescription(
            group.error_code,
            group.group_state,
            group.protocol_data,
            group.protocol_type,
            len(group.members),
            frozenset(topics),
            frozenset(assigned),
        )

    def tell(self, answer: GroupDescription) -> str:
        return describe(answer.error) if answer.error else answer.state

    def __str__(self) -> str:
        return f"DescribeGroups({self.group_id})"


@dataclass(frozen=True, slots=True)
class AskConsumerGroup(Question[GroupDescription]):
    group_id: str

    api = ConsumerGroupDescribeRequest

    def request(self, version: int) -> ConsumerGroupDescribeRequest:
        del version
        return ConsumerGroupDescribeRequest(group_ids=[self.group_id], include_authorized_operations=False)

    def answer(self, response: ConsumerGroupDescribeResponse, version: int) -> GroupDescription:
        del version
        if not response.groups:
            return GroupDescription(ErrorCode.UNKNOWN_SERVER_ERROR)
        (group,) = response.groups
        assigned = {
            TopicPartition(row.topic_name, number)
            for member in group.members
            for row in member.assignment.topic_partitions
            for number in row.partitions
        }
        topics = {topic for member in group.members for topic in member.subscribed_topic_names}
        return GroupDescription(
            group.error_code,
            group.group_state,
            group.assignor_name,
            PROTOCOL_TYPE,
            len(group.members),
            frozenset(topics | {topic for topic, _ in assigned}),
            frozenset(assigned),
        )

    def tell(self, answer: GroupDescription) -> str:
        return describe(answer.error) if answer.error else answer.state

    def __str__(self) -> str:
        return f"ConsumerGroupDescribe({self.group_id})"


@dataclass(frozen=True, slots=True)
class AskToDelete(Question[int]):
    """The answer is an error code."""

    group_id: str

    api = DeleteGroupsRequest

    def request(self, version: int) -> DeleteGroupsRequest:
        del version
        return DeleteGroupsRequest(groups_names=[self.group_id])

    def answer(self, response: DeleteGroupsResponse, version: int) -> int:
        del version
        return next((row.error_code for row in response.results if row.group_id == self.group_id), -1)

    def tell(self, answer: int) -> str:
        return describe(answer)

    def __str__(self) -> str:
        return f"DeleteGroups({self.group_id})"


def _read(read: Any, blob: bytes) -> Any:
    try:
        return read(blob)
    except Malformed:
        return ()  # Another's client may put anything there.
