"""What a repair of mappings changes: for each node its value before and after, so that it can be undone.

A record has them as JSON; null: there is no node. A value that is not UTF-8 keeps its bytes as lone
surrogates, as Python's surrogateescape writes them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kelpie.attribution.requests import Create, Delete, Put
from kelpie.client.zookeeper_nodes import TreeNode

NO_BROKER = -1
"""The requests of a repair come from no broker."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The value of a node before and after a repair. None: there is no node."""

    path: str
    before: bytes | None
    after: bytes | None

    def as_data(self) -> dict[str, str | None]:
        return {"path": self.path, "before": _text(self.before), "after": _text(self.after)}

    @classmethod
    def of_data(cls, row: Mapping[str, Any]) -> "NodeChange":
        return cls(str(row["path"]), _bytes(row["before"]), _bytes(row["after"]))

    @property
    def reversed(self) -> "NodeChange":
        return NodeChange(self.path, self.after, self.before)

    def undone(self, node: TreeNode | None) -> Put | Create | Delete | None:
        """What puts the value back. None: the node does not hold what the repair left there."""
        if (node.value if node is not None else None) != self.after:
            return None
        if node is None:
            return Create(NO_BROKER, self.path, self.before) if self.before is not None else None
        if self.before is None:
            return Delete(NO_BROKER, self.path, node.version)
        return Put(NO_BROKER, self.path, self.before, node.version)


def changes_of(
    requests: Iterable[Put | Create | Delete], nodes: Mapping[str, TreeNode]
) -> tuple[NodeChange, ...]:
    """What these requests change in these nodes."""
    return tuple(
        NodeChange(
            request.path,
            nodes[request.path].value if request.path in nodes else None,
            None if isinstance(request, Delete) else request.value,
        )
        for request in requests
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
