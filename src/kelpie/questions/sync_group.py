from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.questions.question import Question, listed
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE, partitions_in
from kelpie.wire.malformed import Malformed


@dataclass(frozen=True, slots=True)
class Synced:
    error: int
    assignment: bytes = b""
    protocol: str | None = None
    """None where the version does not tell."""


@dataclass(frozen=True, slots=True)
class AskForAssignment(Question[Synced]):
    """`assignments` are handed in by the leader; others have none."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...] = ()

    api = SyncGroupRequest

    @property
    def oldest(self) -> int:
        return 0 if self.instance_id is None else 3

    def request(self, _version: int) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=blob)
                for member_id, blob in self.assignments
            ],
        )

    def answer(self, response: SyncGroupResponse, _version: int) -> Synced:
        return Synced(response.error_code, response.assignment, response.protocol_name)

    def tell(self, answer: Synced) -> str:
        if answer.error:
            return describe(answer.error)
        try:
            return listed(partitions_in(answer.assignment))
        except Malformed as malformed:
            return f"an assignment that cannot be read: {malformed}"

    def __str__(self) -> str:
        handed = f", assignments of {len(self.assignments)}" if self.assignments else ""
        return f"SyncGroup({self.group_id}, generation {self.generation}{handed})"
