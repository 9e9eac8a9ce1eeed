"""How the coordinator knows a consumer."""

from dataclasses import dataclass

NO_GENERATION = -1
NO_MEMBER = ""


@dataclass(frozen=True, slots=True)
class Identity:
    member_id: str = NO_MEMBER
    generation: int = NO_GENERATION
    """In the consumer protocol (KIP-848): the member's epoch."""
    instance_id: str | None = None
    uses_consumer_protocol: bool = False

    @property
    def is_member(self) -> bool:
        return self.generation != NO_GENERATION and self.member_id != NO_MEMBER


NOT_A_MEMBER = Identity()
"""Of a consumer without a group, or one that only reads and commits its offsets."""
