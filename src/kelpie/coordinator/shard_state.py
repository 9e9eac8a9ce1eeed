"""What the events of one shard share: its groups, its offsets, and who it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.manners import Manners
from kelpie.coordinator.offsets import OffsetStore
from kelpie.coordinator.state import State
from kelpie.coordinator.turn import Turn
from kelpie.model.time import Instant
from kelpie.wire.api.offset_fetch import OffsetFetchRequestGroup


@dataclass(frozen=True, slots=True)
class WaitingFetch:
    """An OffsetFetch that wants stable offsets, and waits for commits that are being written (Kafka 4)."""

    to: Any
    group: OffsetFetchRequestGroup
    deadline: Instant


@dataclass(slots=True)
class ShardState:
    config: GroupConfig
    manners: Manners
    new_id: Callable[[], str]
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    """All of them, in the order in which they came. Dead ones stay only in a shard that was unloaded."""
    offsets: OffsetStore = field(default_factory=OffsetStore)
    fetches: list[WaitingFetch] = field(default_factory=list)
    loading: bool = True
    unloaded: bool = False

    def new_group(self, group_id: str, turn: Turn) -> ClassicGroup:
        """A group without members, which nothing but memory knows of so far."""
        assert group_id not in self.groups
        state = State.EMPTY if self.manners.has_empty_state else State.STABLE
        group = self.groups[group_id] = ClassicGroup(group_id, state, turn.now)
        return group

    def bury(self, group_id: str) -> None:
        """Forgets a group that has died in this event."""
        group = self.groups.get(group_id)
        if group is not None and group.state is State.DEAD and not self.unloaded:
            del self.groups[group_id]
