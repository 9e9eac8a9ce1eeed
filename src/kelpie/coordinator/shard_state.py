"""What the events of one shard share: its configuration, its groups and its offsets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.group import Group
from kelpie.coordinator.offsets import OffsetStore
from kelpie.coordinator.release_behaviour import GroupBehaviour
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
    behaviour: GroupBehaviour
    new_id: Callable[[], str]
    groups: dict[str, Group] = field(default_factory=dict)
    """Groups of every kind, oldest first. Dead groups stay only in a shard that was unloaded."""
    offsets: OffsetStore = field(default_factory=OffsetStore)
    fetches: list[WaitingFetch] = field(default_factory=list)
    loading: bool = True
    unloaded: bool = False
