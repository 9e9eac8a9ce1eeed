"""What a scenario runs on: sockets and real time, or a network inside the process and a virtual clock."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop


@dataclass(frozen=True, slots=True)
class Environment:
    """Without arguments: sockets and real time."""

    network: MemoryNetwork | None = None
    wall: Callable[[], float] = time.time
    """Seconds since 1970."""

    @classmethod
    def virtual(cls) -> "Environment":
        """For scenarios on `virtual_time.run`: nothing sleeps, and nothing leaves the process."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "a virtual environment needs a loop with a virtual clock"
        return cls(MemoryNetwork(), loop.wall)

    def now_ms(self) -> int:
        return int(self.wall() * 1000)
