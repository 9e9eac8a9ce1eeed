"""What a rebalance of a classic group does to the partitions that a member holds.

An eager member gives up everything before it joins. A cooperative one keeps it, and gives up afterwards what
the new assignment no longer has; then it must join again, so that others can have that (KIP-429). Either
commits first, if it commits by itself. If the coordinator has dropped the member in the meantime, its
partitions are lost, not revoked: another may have them already.
"""

from collections.abc import Sequence

from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.desk import Turn
from kelpie.consumer.membership.identity import NO_GENERATION, Identity
from kelpie.consumer.membership.membership import Commits
from kelpie.consumer.outcome import Assigned, Lost, Revoked
from kelpie.consumer.positions.assignment import Assignment
from kelpie.model.names import TopicPartition


class Holdings:
    commits: Commits

    def __init__(self, config: ConsumerConfig, assignment: Assignment) -> None:
        self._config = config
        self._assignment = assignment
        self._giving_up = False
        self._given_up = False
        self.granted: tuple[TopicPartition, ...] | None = None
        """An assignment that has come, and waits for a poll."""
        self.remembered: tuple[TopicPartition, ...] = ()
        self.remembered_in = NO_GENERATION
        """The last assignment, and its generation, for sticky assignors."""

    def give_up(self, turn: Turn, identity: Identity) -> bool:
        """Give up what must be given up before a join; whether that is done."""
        if self._given_up:
            return True
        keeps = self._config.is_cooperative and identity.is_member
        if not self._giving_up:
            self._giving_up = True
            if identity.is_member:
                if not keeps:
                    self._assignment.revoking(self._assignment.partitions)
                self.commits.commit_before_leaving(turn, self._config.max_poll_interval_ms)
        if identity.is_member and not self.commits.is_settled:
            return False
        if not keeps:
            self.let_go(turn, identity)
        self._giving_up = False
        self._given_up = True
        return True

    def let_go(self, turn: Turn, identity: Identity) -> None:
        """Of everything."""
        owned = self._assignment.partitions
        self._assignment.assign(())
        if owned:
            turn.tell(Revoked(owned) if identity.is_member else Lost(owned))

    def dropped(self) -> None:
        """The coordinator has taken the member out: what it still holds is lost with the next join."""
        self.granted = None
        self._given_up = False

    def take_on(
        self, turn: Turn, granted: Sequence[TopicPartition], generation: int
    ) -> tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]:
        """The new assignment: what was added, and what was given up for it."""
        self.granted = None
        self._given_up = False
        self.remembered, self.remembered_in = tuple(granted), generation
        owned = self._assignment.partitions
        revoked = tuple(partition for partition in owned if partition not in granted)
        added = tuple(partition for partition in granted if partition not in owned)
        if revoked:
            turn.tell(Revoked(revoked))
        self._assignment.assign(granted)
        turn.tell(Assigned(added))
        return added, revoked
