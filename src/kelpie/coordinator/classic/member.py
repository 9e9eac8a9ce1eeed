"""One member of a classic group (ClassicGroupMember of Kafka 4)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class ParkedJoin:
    """A JoinGroup that waits for the rebalance, and the version in which it wants its answer."""

    to: Any
    version: int


@dataclass(frozen=True, slots=True)
class ParkedSync:
    """A SyncGroup that waits for the leader's."""

    to: Any


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata, the preferred one first. A member that was loaded has only the selected one."""
    assignment: bytes = b""
    is_new: bool = False
    """It has not been in any generation yet."""
    join: ParkedJoin | None = None
    """Only ClassicGroup changes it, since it counts them."""
    sync: ParkedSync | None = None
    deadline: Instant | None = None
    """When its session ends, unless it sends a request before."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def protocol_names(self) -> set[str]:
        return {name for name, _ in self.protocols}

    @property
    def satisfies_heartbeat(self) -> bool:
        """A parked call counts as a heartbeat: the member waits for our answer."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"{self.member_id} does not support {protocol}")

    def vote(self, candidates: Collection[str]) -> str:
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"{self.member_id} supports none of {candidates}")
