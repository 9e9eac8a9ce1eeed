"""A mapping store in memory with rules of ZooKeeper: versions, parents, no deletion of a node with children.

A node's version counts its changes and begins at 0 again when the node is created anew, as in ZooKeeper.
"""

from dataclasses import dataclass, field

from kelpie.attribution.requests import Create, Delete, Put, Read, Request, Result


@dataclass(slots=True)
class _Node:
    value: bytes
    version: int = 0
    children: dict[str, None] = field(default_factory=dict)


class MemoryStore:
    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {"": _Node(b"")}

    def carry_out(self, request: Request) -> Result:
        match request:
            case Put():
                self._put(request)
            case Create():
                if request.path not in self._nodes:
                    self._create(request.path, request.value)
            case Delete():
                self._delete(request)
            case Read():
                node = self._nodes.get(request.path)
                return None if node is None else node.value
            case _:
                node = self._nodes.get(request.path)
                names = () if node is None else node.children
                return {name: self._nodes[f"{request.path}/{name}"].value for name in names}
        return None

    def version(self, path: str) -> int | None:
        node = self._nodes.get(path)
        return None if node is None else node.version

    def listing(self, root: str) -> dict[str, bytes]:
        """Path and value of every node below the root, nested ones too."""
        return {path: node.value for path, node in self._nodes.items() if path.startswith(f"{root}/")}

    def _put(self, request: Put) -> None:
        node = self._nodes.get(request.path)
        if node is None:
            if request.version is None:
                self._create(request.path, request.value)
        elif request.version in (None, node.version):
            node.value = request.value
            node.version += 1

    def _create(self, path: str, value: bytes) -> None:
        parent, _, name = path.rpartition("/")
        if parent not in self._nodes:
            self._create(parent, b"")
        self._nodes[parent].children[name] = None
        self._nodes[path] = _Node(value)

    def _delete(self, request: Delete) -> None:
        node = self._nodes.get(request.path)
        if node is None or node.children or request.version not in (None, node.version):
            return
        del self._nodes[request.path]
        parent, _, name = request.path.rpartition("/")
        self._nodes[parent].children.pop(name, None)
