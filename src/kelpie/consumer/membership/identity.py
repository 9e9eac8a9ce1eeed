"""Who a consumer is to its coordinator."""

from dataclasses import dataclass
from typing import Protocol

from kelpie.consumer.desk import Turn
from kelpie.consumer.outcome import Problem

NO_GENERATION = -1
NO_MEMBER = ""


@dataclass(frozen=True, slots=True)
class Identity:
    member_id: str = NO_MEMBER
    generation: int = NO_GENERATION
    """Or, in the newer protocol, the member's epoch."""
    instance_id: str | None = None
    is_newer: bool = False

    @property
    def is_member(self) -> bool:
        return self.generation != NO_GENERATION and self.member_id != NO_MEMBER


STRANGER = Identity()
"""Of no group, or reading its offsets from outside."""


class Member(Protocol):
    """What commits and offset requests need to know of the membership, and to tell it."""

    @property
    def identity(self) -> Identity: ...

    def committer(self) -> "Identity | Problem":
        """As whom to commit, or why it cannot be done now."""

    def refused(self, turn: Turn, error: int, sent: Identity) -> None:
        """The coordinator refused a request of `sent`: 22, 25, 27, 82, 110 or 113."""


class Outsider:
    """Reads and commits for a group without joining it."""

    @property
    def identity(self) -> Identity:
        return STRANGER

    def committer(self) -> "Identity | Problem":
        return STRANGER

    def refused(self, turn: Turn, error: int, sent: Identity) -> None:
        """Nothing follows: there is no membership to lose."""
