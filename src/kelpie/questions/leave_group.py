from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.questions.question import Question
from kelpie.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity


@dataclass(frozen=True, slots=True)
class AskToLeave(Question[int]):
    """The answer is an error code."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    reason: str = ""

    api = LeaveGroupRequest

    def request(self, version: int) -> LeaveGroupRequest:
        if version < 3:
            return LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        identity = MemberIdentity(
            member_id=self.member_id, group_instance_id=self.instance_id, reason=self.reason[:255]
        )
        return LeaveGroupRequest(group_id=self.group_id, members=[identity])

    def answer(self, response: LeaveGroupResponse, _version: int) -> int:
        errors = [response.error_code, *(member.error_code for member in response.members)]
        return next((error for error in errors if error), 0)

    def tell(self, answer: int) -> str:
        return describe(answer)

    def __str__(self) -> str:
        return f"LeaveGroup({self.group_id}, member {self.member_id})"
