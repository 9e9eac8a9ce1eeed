"""KoP's mapping of clients to groups: one node of ZooKeeper for each host and client id."""

from typing import NamedTuple

from kelpie.attribution.addresses import KOP_ROOT, ClientAddress
from kelpie.model.time import Instant


class MappingListing(NamedTuple):
    """The tree was listed. A tree without nodes is a row, too: what a listing leaves out does not exist."""

    root: str = KOP_ROOT
    exists: bool = True
    at: Instant | None = None
    source: str = ""


class MappingNode(NamedTuple):
    """A node that maps a client to a group, as one listing has it."""

    listing: str
    """The source of its listing."""
    path: str
    group: str
    host: str = ""
    """As KoP keeps it: an IPv6 address is cut at its first ":". So paths are compared, and hosts are not."""
    client_id: str = ""
    version: int = -1
    """How often the node was set after it was created; -1: unknown."""
    at: Instant | None = None
    source: str = ""

    @property
    def client(self) -> ClientAddress:
        return ClientAddress(self.host, self.client_id)
