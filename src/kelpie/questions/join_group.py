from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.questions.question import Question
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE


@dataclass(frozen=True, slots=True)
class JoinedMember:
    member_id: str
    instance_id: str | None
    subscription: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    error: int
    generation: int = -1
    protocol_type: str | None = None
    """None where the version does not tell."""
    protocol: str | None = None
    leader: str = ""
    member_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    """All of them, for the leader only."""
    skip_assignment: bool = False
    """To a leader: the assignment stands (KIP-814)."""

    @property
    def leads(self) -> bool:
        return self.leader == self.member_id


@dataclass(frozen=True, slots=True)
class AskToJoin(Question[Joined]):
    group_id: str
    member_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Assignors by preference, each with the member's subscription."""
    reason: str = ""

    api = JoinGroupRequest

    @property
    def oldest(self) -> int:
        return 0 if self.instance_id is None else 5

    def request(self, _version: int) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=blob) for name, blob in self.protocols],
            reason=self.reason[:255],  # Brokers take no more.
        )

    def answer(self, response: JoinGroupResponse, _version: int) -> Joined:
        return Joined(
            response.error_code,
            response.generation_id,
            response.protocol_type,
            response.protocol_name,
            response.leader,
            response.member_id,
            tuple(
                JoinedMember(row.member_id, row.group_instance_id, row.metadata) for row in response.members
            ),
            response.skip_assignment,
        )

    def tell(self, answer: Joined) -> str:
        if answer.error:
            given = (
                f", with the member id {answer.member_id}" if answer.member_id and not self.member_id else ""
            )
            return describe(answer.error) + given
        role = f"leader of {len(answer.members)}" if answer.leads else "a follower"
        return f"generation {answer.generation}, {role}, assignor {answer.protocol}"

    def __str__(self) -> str:
        known = [f"member {self.member_id}"] if self.member_id else []
        known += [f"instance {self.instance_id}"] if self.instance_id is not None else []
        names = ", ".join(name for name, _ in self.protocols)
        return f"JoinGroup({', '.join([self.group_id, *known, names])})"
