"""What a consumer asks of ZooKeeper, and what ZooKeeper answers, as values.

| request | answers |
|---|---|
| `Children` | `Names`; `NoNode` |
| `Read` | `Node`; `NoNode` |
| `CreateEphemeral` | `Done`; `NodeExists` |
| `Put` | `Written`; `BadVersion`, only with a version |
| `Delete` | `Done`; `NoNode` |

`CreateEphemeral` and `Put` create missing nodes above theirs, persistent and without a value.
A request with `watch` sets a one-shot watch, as in ZooKeeper: on the list of children, or on the node (which
need not exist). A second request for the same path does not add a second watch.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Children:
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class CreateEphemeral:
    path: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Put:
    """Set a persistent node's value; create it if it does not exist."""

    path: str
    value: bytes
    version: int | None = None
    """Only if the node has this version; −1: only if it does not exist. None: in any case."""


@dataclass(frozen=True, slots=True)
class Delete:
    path: str


Request = Children | Read | CreateEphemeral | Put | Delete


@dataclass(frozen=True, slots=True)
class Names:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    value: bytes
    version: int = 0
    session: int = 0
    """The session whose ephemeral node it is (ephemeralOwner); 0: a persistent node."""


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Written:
    version: int


@dataclass(frozen=True, slots=True)
class NoNode:
    pass


@dataclass(frozen=True, slots=True)
class NodeExists:
    pass


@dataclass(frozen=True, slots=True)
class BadVersion:
    pass


Answer = Names | Node | Done | Written | NoNode | NodeExists | BadVersion
