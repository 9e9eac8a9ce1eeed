from dataclasses import dataclass

from kelpie.errors import ErrorCode, describe
from kelpie.questions.question import Question
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse


@dataclass(frozen=True, slots=True)
class FoundCoordinator:
    error: int
    node_id: int = -1
    host: str = ""
    port: int = -1
    message: str | None = None


@dataclass(frozen=True, slots=True)
class AskCoordinator(Question[FoundCoordinator]):
    group_id: str

    api = FindCoordinatorRequest

    def request(self, version: int) -> FindCoordinatorRequest:
        if version < 4:
            return FindCoordinatorRequest(key=self.group_id)
        return FindCoordinatorRequest(coordinator_keys=[self.group_id])

    def answer(self, response: FindCoordinatorResponse, version: int) -> FoundCoordinator:
        if version < 4:
            return FoundCoordinator(
                response.error_code, response.node_id, response.host, response.port, response.error_message
            )
        for row in response.coordinators:
            if row.key == self.group_id:
                return FoundCoordinator(row.error_code, row.node_id, row.host, row.port, row.error_message)
        return FoundCoordinator(ErrorCode.UNKNOWN_SERVER_ERROR, message="the answer does not name the group")

    def tell(self, answer: FoundCoordinator) -> str:
        if answer.error:
            return describe(answer.error) + (f": {answer.message}" if answer.message else "")
        return f"broker {answer.node_id} at {answer.host}:{answer.port}"

    def __str__(self) -> str:
        return f"FindCoordinator({self.group_id})"
