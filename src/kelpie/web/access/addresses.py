"""Where a request comes from: the address that has connected, or what a trusted proxy says of it."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
UNKNOWN = "unknown"
_FORWARDED = b"x-forwarded-for"


@dataclass(frozen=True, slots=True)
class Origin:
    address: str
    via: str = ""
    """The proxy that has passed the request on."""


@dataclass(frozen=True, slots=True)
class Proxies:
    """Those whose headers are believed."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "Proxies":
        """Addresses, or networks as 10.0.0.0/24. Raises ValueError."""
        return cls(tuple(ipaddress.ip_network(text.strip("[]")) for text in texts))

    def __bool__(self) -> bool:
        return bool(self.networks)

    def has(self, address: str) -> bool:
        parsed = _parsed(address)
        return parsed is not None and any(parsed in network for network in self.networks)

    def origin(self, scope: Scope) -> Origin:
        """A proxy writes the address of its client behind those that the client itself has sent."""
        peer = scope["client"][0] if scope.get("client") else UNKNOWN
        if not self.has(peer):
            return Origin(peer)
        sent = [value for name, value in scope["headers"] if name == _FORWARDED]
        last = sent[-1].decode("latin-1").rpartition(",")[2].strip() if sent else ""
        client = _parsed(last.strip("[]"))
        return Origin(str(client) if client is not None else UNKNOWN, peer)


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed
