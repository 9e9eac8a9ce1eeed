"""What a scenario runs on: sockets and real time, or a network inside the process and a virtual clock."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop

_SEED = 1


@dataclass(frozen=True, slots=True)
class Environment:
    """Without arguments: sockets and real time."""

    network: MemoryNetwork | None = None
    wall: Callable[[], float] = time.time
    """Seconds since 1970."""
    rng: random.Random = field(default_factory=random.Random)

    @classmethod
    def virtual(cls) -> "Environment":
        """For scenarios on `virtual_time.run`: nothing sleeps, and every run takes the same course."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "a virtual environment needs a loop with a virtual clock"
        return cls(MemoryNetwork(), loop.wall, random.Random(_SEED))

    def now_ms(self) -> int:
        return int(self.wall() * 1000)
