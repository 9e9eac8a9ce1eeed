"""What the consumer wants of its membership, whichever protocol it speaks."""

from enum import Enum
from typing import Protocol

from kelpie.consumer.desk import Turn
from kelpie.consumer.membership.identity import Member, Outsider
from kelpie.model.time import Instant


class Reach(Enum):
    """How far a poll may go on."""

    NOTHING = 0
    """There is no coordinator."""
    FETCHES = 1
    """It is joining: partitions that have a position may be read."""
    ALL = 2


class Commits(Protocol):
    """What a membership needs of commits before it gives partitions up."""

    @property
    def is_settled(self) -> bool: ...

    def commit_before_leaving(self, turn: Turn, limit_ms: int) -> None: ...


class Membership(Member, Protocol):
    commits: Commits
    muted: bool
    """Heartbeats are held back: for experiments."""

    def background(self, turn: Turn) -> None:
        """What happens whether or not the application polls: heartbeats, and what they lead to."""

    def advance(self, turn: Turn) -> Reach:
        """What happens in polls: joining, taking on partitions."""

    def polled(self, turn: Turn) -> None:
        """The application polls."""

    def close(self, turn: Turn) -> None:
        """Reach the group, if it is to be left."""

    @property
    def is_joined(self) -> bool:
        """Whether it is a member and has taken on its assignment."""

    @property
    def is_closed(self) -> bool: ...

    def deadline(self, now: Instant, polling: bool) -> Instant | None: ...


class NoMembership(Outsider):
    """Partitions are taken by hand; a group, if there is one, is not joined."""

    commits: Commits
    muted = False
    is_joined = False
    is_closed = True

    def background(self, turn: Turn) -> None:
        """Nothing."""

    def advance(self, turn: Turn) -> Reach:
        del turn
        return Reach.ALL

    def polled(self, turn: Turn) -> None:
        """Nothing."""

    def close(self, turn: Turn) -> None:
        """Nothing."""

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        del now, polling
        return None
