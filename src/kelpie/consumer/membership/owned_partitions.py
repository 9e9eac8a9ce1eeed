"""What a rebalance of a classic group does to the partitions that a member owns.

An eager member gives up all partitions before it joins. A cooperative one keeps them, and afterwards gives up
those that are not in the new assignment; then it joins again, so that other members get them (KIP-429). Both
commit first, if commits are automatic. If the coordinator has removed the member in the meantime, its
partitions are lost, not revoked: another member may have them already.
"""

from collections.abc import Sequence

from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.effects import Effects, PartitionsAssigned, PartitionsLost, PartitionsRevoked
from kelpie.consumer.membership.membership import NO_GENERATION, Commits, Identity
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.model.names import TopicPartition


class OwnedPartitions:
    def __init__(self, config: ConsumerConfig, assignment: SubscriptionState) -> None:
        self._config = config
        self._assignment = assignment
        self._giving_up = False
        self._given_up = False
        self.granted: tuple[TopicPartition, ...] | None = None
        """An assignment from the coordinator that waits for a poll."""
        self.remembered: tuple[TopicPartition, ...] = ()
        self.remembered_in = NO_GENERATION
        """The last assignment, and its generation, for sticky assignors."""

    def revoke_before_join(self, effects: Effects, identity: Identity, commits: Commits) -> bool:
        """Give up what an eager member may not keep while it joins. Whether that is done."""
        if self._given_up:
            return True
        keeps = self._config.is_cooperative and identity.is_member
        if not self._giving_up:
            self._giving_up = True
            if identity.is_member:
                if not keeps:
                    self._assignment.revoking(self._assignment.partitions)
                commits.commit_before_leaving(effects, self._config.max_poll_interval_ms)
        if identity.is_member and not commits.is_settled:
            return False
        if not keeps:
            self.release_all(effects, identity)
        self._giving_up = False
        self._given_up = True
        return True

    def release_all(self, effects: Effects, identity: Identity) -> None:
        """Give up all partitions."""
        owned = self._assignment.partitions
        self._assignment.assign(())
        if owned:
            effects.emit(PartitionsRevoked(owned) if identity.is_member else PartitionsLost(owned))

    def coordinator_dropped_member(self) -> None:
        """The coordinator has removed the member: its partitions are lost with the next join."""
        self.granted = None
        self._given_up = False

    def accept(
        self, effects: Effects, granted: Sequence[TopicPartition], generation: int
    ) -> tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]:
        """Take the new assignment on: returns the partitions that came and those that were given up."""
        self.granted = None
        self._given_up = False
        self.remembered, self.remembered_in = tuple(granted), generation
        owned = self._assignment.partitions
        revoked = tuple(partition for partition in owned if partition not in granted)
        added = tuple(partition for partition in granted if partition not in owned)
        if revoked:
            effects.emit(PartitionsRevoked(revoked))
        self._assignment.assign(granted)
        effects.emit(PartitionsAssigned(added))
        return added, revoked
