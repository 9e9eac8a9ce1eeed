"""One partition that the consumer reads: where it stands, and what may be done with it."""

from dataclasses import dataclass
from enum import StrEnum

from kelpie.consumer.metadata import NO_LEADER, Leader
from kelpie.consumer.positions.fetch_state import MAY_BECOME, FetchState
from kelpie.consumer.positions.reset_policy import ResetPolicy
from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """The next record to read."""

    offset: int
    epoch: int | None = None
    """Of the record before it: by this a truncated log is noticed."""
    leader: Leader = NO_LEADER
    """Who led the partition when the position was taken up, or last checked."""

    @property
    def can_be_checked(self) -> bool:
        return self.epoch is not None and self.leader.epoch is not None


class PositionOrigin(StrEnum):
    """What said where to begin."""

    COMMITTED = "committed"
    RESET = "reset"
    TRUNCATED = "truncated"
    SOUGHT = "sought"


class TopicPartitionState:
    def __init__(self) -> None:
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.began: tuple[int, PositionOrigin] | None = None
        """The offset at which it last took up a position, and what said so."""
        self.unusable: int | None = None
        """The offset at which it could not go on before that, if it was reset for this reason."""
        self.policy: ResetPolicy | None = None
        """Of AWAIT_RESET: by which policy."""
        self.not_before: Instant = 0
        """Resets and checks are not tried before this."""
        self.paused = False
        self.being_revoked = False
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None

    @property
    def is_fetchable(self) -> bool:
        return self.fetch_state is FetchState.FETCHING and not self.paused and not self.being_revoked

    def seek_unvalidated(
        self, position: FetchPosition, origin: PositionOrigin = PositionOrigin.SOUGHT
    ) -> bool:
        """Take up a position that may be of another leader's time: it is checked if it can be."""
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
        """The leader as it is known now. Whether the position must be checked with it."""
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
        """Records up to here have been handed to the application."""
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
