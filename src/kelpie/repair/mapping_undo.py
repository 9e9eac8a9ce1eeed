"""What a repair of mappings changes, in a file, so that it can be undone.

A JSON object: the root of the tree, and for each node its value before and after. null: there is no node.
A value that is not UTF-8 keeps its bytes as lone surrogates, as Python's surrogateescape writes them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kelpie.attribution.requests import Create, Delete, Put
from kelpie.client.zookeeper_nodes import TreeNode
from kelpie.repair.plan import CannotRepair

FORMAT = "kelpie mappings"
NO_BROKER = -1
"""The requests of a repair come from no broker."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The value of a node before and after a repair. None: there is no node."""

    path: str
    before: bytes | None
    after: bytes | None

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


def write(changes: Iterable[NodeChange], root: str) -> str:
    rows = [
        {"path": change.path, "before": _text(change.before), "after": _text(change.after)}
        for change in changes
    ]
    return json.dumps({"format": FORMAT, "root": root, "changes": rows}, indent=1) + "\n"


def read(file: Path, root: str) -> tuple[NodeChange, ...]:
    """Raises CannotRepair for a file that no repair of this tree wrote."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(document["format"])
        written_for = document["root"]
        changes = tuple(
            NodeChange(str(row["path"]), _bytes(row["before"]), _bytes(row["after"]))
            for row in document["changes"]
        )
    except OSError as error:
        raise CannotRepair(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CannotRepair(f"{file} is no file that kelpie mappings repair wrote to undo itself.") from None
    if written_for != root or not all(change.path.startswith(f"{root}/") for change in changes):
        raise CannotRepair(f"{file} is for the tree {written_for}, and this one is {root}.")
    return changes


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
