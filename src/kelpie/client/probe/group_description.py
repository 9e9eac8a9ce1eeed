"""The coordinator's description of a group: DescribeGroups, or ConsumerGroupDescribe (KIP-848)."""

from dataclasses import dataclass

from kelpie.client.admin.groups import ABSENT, classic_state, consumer_state
from kelpie.errors import ErrorCode, describe
from kelpie.observations import GroupState
from kelpie.questions.question import Question
from kelpie.wire.api.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kelpie.wire.api.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kelpie.wire.api.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE


@dataclass(frozen=True, slots=True)
class GroupDescription:
    error: int
    state: str = ""
    protocol: str = ""
    """The assignor."""
    protocol_type: str = PROTOCOL_TYPE
    members: int = 0
    topics: frozenset[str] = frozenset()

    @property
    def exists(self) -> bool:
        return self.state != ABSENT and self.error != ErrorCode.GROUP_ID_NOT_FOUND

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type in ("", PROTOCOL_TYPE)

    @classmethod
    def of(cls, group: GroupState) -> "GroupDescription":
        topics = {topic for member in group.members for topic in member.subscribed or ()}
        topics |= {name.topic for member in group.members for name in member.assigned or ()}
        return cls(
            group.error,
            group.state,
            group.protocol,
            group.protocol_type,
            len(group.members),
            frozenset(topics),
        )


@dataclass(frozen=True, slots=True)
class AskGroup(Question[GroupDescription]):
    group_id: str

    api = DescribeGroupsRequest

    def request(self, version: int) -> DescribeGroupsRequest:
        del version
        return DescribeGroupsRequest(groups=[self.group_id])

    def answer(self, response: DescribeGroupsResponse, version: int) -> GroupDescription:
        del version
        for group in response.groups:
            return GroupDescription.of(classic_state(group, -1, 0, ""))
        return GroupDescription(ErrorCode.UNKNOWN_SERVER_ERROR)

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
        for group in response.groups:
            return GroupDescription.of(consumer_state(group, -1, 0, ""))
        return GroupDescription(ErrorCode.UNKNOWN_SERVER_ERROR)

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
