"""What talking to a cluster costs."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    connections: int = 0
    requests: int = 0
    answers: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    by_api: Counter[str] = field(default_factory=Counter)
    """How many requests of each API."""
