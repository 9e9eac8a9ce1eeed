"""What a broker asks of the mapping store, as values.

The store carries them out in the order in which they arrive. Requests of one broker arrive in the order in
which the broker sent them, as in one session of ZooKeeper; between brokers there is no order.

| request | result |
|---|---|
| `Put`, `Create`, `Delete` | None |
| `Read` | the node's value, or None if there is no node |
| `ReadChildren` | the value of each child by its name; empty if there is no node |
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Put:
    """Set a node's value; create the node, and those above it, if it does not exist."""

    broker: int
    path: str
    value: bytes
    version: int | None = None
    """Only if the node has this version. None: whatever version it has."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node, and those above it. A node that exists stays as it is."""

    broker: int
    path: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a node that has no children. A node that does not exist is no error."""

    broker: int
    path: str
    version: int | None = None
    """Only if the node has this version. None: whatever version it has, as KoP deletes."""


@dataclass(frozen=True, slots=True)
class Read:
    broker: int
    path: str


@dataclass(frozen=True, slots=True)
class ReadChildren:
    broker: int
    path: str


Request = Put | Create | Delete | Read | ReadChildren
Result = bytes | dict[str, bytes] | None
