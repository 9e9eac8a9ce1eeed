"""What a client needs to know of a cluster before it connects."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from kelpie.client.address import Address
from kelpie.client.security import PLAINTEXT, Security


class InProcessNetwork(Protocol):
    """Connects clients to brokers of the same process: the lab has one for runs on a virtual clock."""

    async def connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        """Connect the protocol to whatever listens there. Raises ConnectionRefusedError."""


@dataclass(frozen=True, slots=True)
class Settings:
    bootstrap: tuple[Address, ...]
    client_id: str = "kelpie"
    security: Security = PLAINTEXT
    request_timeout_s: float = 5.0
    """How long one answer may take."""
    connect_timeout_s: float = 3.0
    """How long a connection may take to come about, encryption included."""
    ignored: tuple[str, ...] = ()
    """Keys of the properties file that mean nothing here, and values of others that cannot be had."""
    network: InProcessNetwork | None = field(default=None, compare=False)
    """Instead of sockets: a network inside this process."""

    @property
    def bootstrap_servers(self) -> str:
        """As `Settings.of` takes it."""
        return ",".join(map(str, self.bootstrap))

    @classmethod
    def of(
        cls,
        bootstrap: str,
        *,
        client_id: str = "kelpie",
        security: Security = PLAINTEXT,
        request_timeout_s: float = 5.0,
        connect_timeout_s: float = 3.0,
    ) -> "Settings":
        """`Settings.of("kafka-1:9092,kafka-2:9092")`. Raises BadSettings."""
        return cls(Address.parse_list(bootstrap), client_id, security, request_timeout_s, connect_timeout_s)
