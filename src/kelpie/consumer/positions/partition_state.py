"""The state of one assigned partition, as in Kafka's SubscriptionState: its position, and if it is fetched.

INITIALIZING       just assigned: its first offset is not known
FETCHING           it has a position, and is fetched from there
AWAIT_RESET        the reset policy will give the position
AWAIT_VALIDATION   it has a position, but the leader has changed: the new log may lack records that were read

| from             | may become                                       | has a position | is fetched |
|------------------|--------------------------------------------------|----------------|------------|
| INITIALIZING     | FETCHING, AWAIT_RESET, AWAIT_VALIDATION          | no             | no         |
| FETCHING         | FETCHING, AWAIT_RESET, AWAIT_VALIDATION          | yes            | yes        |
| AWAIT_RESET      | FETCHING, AWAIT_RESET                            | no             | no         |
| AWAIT_VALIDATION | FETCHING, AWAIT_RESET, AWAIT_VALIDATION          | yes            | no         |

No partition returns to INITIALIZING. A transition that is not in the table does not happen. That is no error:
an answer may come late.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

from kelpie.consumer.metadata import NO_LEADER, Leader
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.model.time import Instant


class FetchState(Enum):
    INITIALIZING = "INITIALIZING"
    FETCHING = "FETCHING"
    AWAIT_RESET = "AWAIT_RESET"
    AWAIT_VALIDATION = "AWAIT_VALIDATION"

    @property
    def has_position(self) -> bool:
        return self in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)


_ANY = frozenset(FetchState) - {FetchState.INITIALIZING}
MAY_BECOME: dict[FetchState, frozenset[FetchState]] = {
    FetchState.INITIALIZING: _ANY,
    FetchState.FETCHING: _ANY,
    FetchState.AWAIT_RESET: _ANY - {FetchState.AWAIT_VALIDATION},
    FetchState.AWAIT_VALIDATION: _ANY,
}


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """The offset of the next record to read."""

    offset: int
    epoch: int | None = None
    """The leader epoch of the record before it: by this a truncated log is noticed."""
    leader: Leader = NO_LEADER
    """The leader when the position was taken up, or last validated."""

    @property
    def can_be_checked(self) -> bool:
        return self.epoch is not None and self.leader.epoch is not None


class PositionOrigin(StrEnum):
    """Where a position comes from."""

    COMMITTED = "committed"
    RESET = "reset"
    TRUNCATED = "truncated"
    SOUGHT = "sought"


class TopicPartitionState:
    def __init__(self) -> None:
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.began: tuple[int, PositionOrigin] | None = None
        """The last position that was taken up, and where it came from."""
        self.unusable: int | None = None
        """The position before a reset: the offset that could not be used."""
        self.policy: ResetPolicy | None = None
        """In AWAIT_RESET: the policy."""
        self.not_before: Instant = 0
        """No reset or validation before this time."""
        self.paused = False
        self.being_revoked = False
        self.high_watermark: int | None = None

    @property
    def is_fetchable(self) -> bool:
        return self.fetch_state is FetchState.FETCHING and not self.paused and not self.being_revoked

    def seek_unvalidated(
        self, position: FetchPosition, origin: PositionOrigin = PositionOrigin.SOUGHT
    ) -> bool:
        """Take up a position that another leader may have given: it is validated if it has an epoch."""
        return self.seek_validated(position, origin) and self._validate(position)

    def seek_validated(self, position: FetchPosition, origin: PositionOrigin = PositionOrigin.SOUGHT) -> bool:
        if not self._become(FetchState.FETCHING):
            return False
        self.position = position
        self.began = (position.offset, origin)
        if origin is not PositionOrigin.RESET:
            self.unusable = None
        self.policy = None
        self.not_before = 0
        return True

    def reset(self, policy: ResetPolicy) -> bool:
        if not self._become(FetchState.AWAIT_RESET):
            return False
        self.unusable = None if self.position is None else self.position.offset
        self.position = None
        self.policy = policy
        self.not_before = 0
        return True

    def meet_leader(self, leader: Leader) -> bool:
        """The current leader by the metadata. Whether the position must be validated with it."""
        if self.fetch_state is FetchState.AWAIT_RESET or leader.node_id is None:
            return False
        if self.position is not None and self.position.leader != leader:
            self._validate(FetchPosition(self.position.offset, self.position.epoch, leader))
        return self.fetch_state is FetchState.AWAIT_VALIDATION

    def validated(self) -> None:
        if self.fetch_state is FetchState.AWAIT_VALIDATION:
            self._become(FetchState.FETCHING)
            self.not_before = 0

    def consumed(self, position: FetchPosition) -> None:
        """Records up to this position were delivered to the application."""
        assert self.fetch_state is FetchState.FETCHING, f"records consumed in {self.fetch_state}"
        self.position = position

    def _validate(self, position: FetchPosition) -> bool:
        after = FetchState.AWAIT_VALIDATION if position.can_be_checked else FetchState.FETCHING
        if not self._become(after):
            return False
        self.position = position
        self.not_before = 0
        return True

    def _become(self, state: FetchState) -> bool:
        if state not in MAY_BECOME[self.fetch_state]:
            return False
        self.fetch_state = state
        return True
