"""What one connection to a cluster finds out for those that follow."""

import asyncio
import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token. `text` is never shown."""

    text: str = field(repr=False)
    ends: float | None = None
    """When it stops being good: seconds since 1970; None where that is not known."""


@dataclass(slots=True)
class Memory:
    tells_versions: bool | None = None
    """Whether the cluster's brokers answer ApiVersions: those before 0.10 do not."""
    is_kafka_0_8: bool = False
    """Speak to all brokers as to Kafka 0.8, in version 0 of each request; up to 3.9 they understand it."""
    tls: ssl.SSLContext | None = None
    token: Token | None = field(default=None, repr=False)
    fetching_token: asyncio.Lock = field(default_factory=asyncio.Lock)
