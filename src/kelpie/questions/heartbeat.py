from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.questions.question import Question
from kelpie.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse


@dataclass(frozen=True, slots=True)
class AskHeartbeat(Question[int]):
    """The answer is an error code."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None

    api = HeartbeatRequest

    @property
    def oldest(self) -> int:
        return 0 if self.instance_id is None else 3

    def request(self, _version: int) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

    def answer(self, response: HeartbeatResponse, _version: int) -> int:
        return response.error_code

    def tell(self, answer: int) -> str:
        return describe(answer)

    def __str__(self) -> str:
        return f"Heartbeat({self.group_id}, generation {self.generation})"
