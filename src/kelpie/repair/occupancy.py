"""Whether a name is free for a group to move to, or whether an earlier run has moved it there already."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from kelpie.client.admin.groups import ABSENT
from kelpie.model.names import TopicPartition
from kelpie.observations import GroupState
from kelpie.repair.claims import Claim


class Use(Enum):
    FREE = auto()
    BEGUN = auto()
    """Some of the offsets are there, just as they would be carried over: an earlier run broke."""
    DONE = auto()
    """All of them are there: an earlier run has done it."""
    PERHAPS_DONE = auto()
    """All partitions are there, none behind: an earlier move that has gone on since, or another group."""
    TAKEN = auto()


@dataclass(frozen=True, slots=True)
class Occupant:
    """What has a name now: a group, or nothing."""

    state: GroupState
    listed: bool
    """Whether a broker lists a group of this name."""
    offsets: Mapping[TopicPartition, Claim] = field(default_factory=dict)

    def use(self, wanted: Mapping[TopicPartition, int]) -> Use:
        """How the name is used. `wanted`: the offsets that shall be committed under it."""
        present = {partition: claim.offset for partition, claim in self.offsets.items()}
        if not present and not self.state.members:
            # A share group, for example: its offsets are elsewhere, and nobody can commit for it.
            return Use.TAKEN if self.listed and self.state.state == ABSENT else Use.FREE
        if not self.state.members and present.items() <= wanted.items():
            return Use.DONE if len(present) == len(wanted) else Use.BEGUN
        ahead = all(present.get(partition, -1) >= offset for partition, offset in wanted.items())
        return Use.PERHAPS_DONE if ahead else Use.TAKEN
