"""What can stand in for sockets."""

import asyncio
from typing import Protocol


class Network(Protocol):
    """Connects clients to brokers of the same process: the lab has one for runs on a virtual clock."""

    async def connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        """Connect the protocol to whatever listens there. Raises ConnectionRefusedError."""
