"""What is set up on a real broker, and for how long the doctor looks at it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Course:
    name: str
    writes: Mapping[str, tuple[float, ...]]
    """Topic → records a second, by partition."""
    backlog: Mapping[str, int]
    """Records of each partition before anybody reads."""
    groups: frozenset[str]
    minutes: float
    """After so long, each fault is found."""
    keeps_every: int = 1
    """Of the moments, every so many is kept in the file, and the last one."""
    members: Mapping[str, int] = field(default_factory=dict)
    """Of groups that have several."""
    held_up: str | None = None
    """A group that stands at the poison record."""
