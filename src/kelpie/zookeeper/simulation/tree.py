"""The nodes of a ZooKeeper, its sessions and one-shot watches, without time.

As in ZooKeeper: a node's version begins at 0 and counts its changes; ephemeral nodes go with their session; a
watch on children fires when one comes or goes, a watch on a node when it is created, changed or deleted.
"""

from dataclasses import dataclass, field

from kelpie.zookeeper.requests import (
    Answer,
    BadVersion,
    Children,
    CreateEphemeral,
    Delete,
    Done,
    Names,
    Node,
    NodeExists,
    NoNode,
    Put,
    Read,
    Request,
    Written,
)


@dataclass(slots=True)
class _Stored:
    value: bytes
    session: int = 0
    version: int = 0
    children: dict[str, None] = field(default_factory=dict)


class ZookeeperTree:
    def __init__(self) -> None:
        self._nodes: dict[str, _Stored] = {"": _Stored(b"")}
        self._child_watches: dict[str, dict[int, None]] = {}
        self._node_watches: dict[str, dict[int, None]] = {}
        self._ephemerals: dict[int, dict[str, None]] = {}
        self._last_session = 0x100
        self._fired: list[tuple[int, str]] = []

    # Sessions.

    def open_session(self) -> int:
        self._last_session += 1
        self._ephemerals[self._last_session] = {}
        return self._last_session

    def has_session(self, session: int) -> bool:
        return session in self._ephemerals

    def end_session(self, session: int) -> None:
        """Closed or expired: its watches and its ephemeral nodes go."""
        for watches in (self._child_watches, self._node_watches):
            for watchers in watches.values():
                watchers.pop(session, None)
        for path in self._ephemerals.pop(session, ()):
            self._remove(path)

    def take_fired(self) -> list[tuple[int, str]]:
        """The watches that fired since the last call: session and path, in order."""
        fired, self._fired = self._fired, []
        return fired

    # Requests.

    def carry_out(self, session: int, request: Request) -> Answer:
        assert self.has_session(session), session
        match request:
            case Children(path, watch):
                return self._list(session, path, watch=watch)
            case Read(path, watch):
                return self._read(session, path, watch=watch)
            case CreateEphemeral(path, value):
                if path in self._nodes:
                    return NodeExists()
                self._create(path, value, session)
                self._ephemerals[session][path] = None
                return Done()
            case Put():
                return self._put(request)
            case Delete(path):
                if path not in self._nodes:
                    return NoNode()
                owner = self._nodes[path].session
                if owner:
                    self._ephemerals[owner].pop(path, None)
                self._remove(path)
                return Done()

    def nodes_below(self, root: str) -> dict[str, Node]:
        """Every node below the root, nested ones too."""
        return {
            path: Node(stored.value, stored.version, stored.session)
            for path, stored in self._nodes.items()
            if path.startswith(f"{root}/")
        }

    def get(self, path: str) -> Node | None:
        stored = self._nodes.get(path)
        return None if stored is None else Node(stored.value, stored.version, stored.session)

    def _list(self, session: int, path: str, *, watch: bool) -> Answer:
        stored = self._nodes.get(path)
        if watch:
            self._child_watches.setdefault(path, {})[session] = None
        return NoNode() if stored is None else Names(tuple(stored.children))

    def _read(self, session: int, path: str, *, watch: bool) -> Answer:
        stored = self._nodes.get(path)
        if watch:
            self._node_watches.setdefault(path, {})[session] = None
        return NoNode() if stored is None else Node(stored.value, stored.version, stored.session)

    def _put(self, request: Put) -> Answer:
        stored = self._nodes.get(request.path)
        if stored is None:
            if request.version not in (None, -1):
                return BadVersion()
            self._create(request.path, request.value)
            return Written(0)
        if request.version not in (None, stored.version):
            return BadVersion()
        stored.value = request.value
        stored.version += 1
        self._fire(self._node_watches, request.path)
        return Written(stored.version)

    def _create(self, path: str, value: bytes, session: int = 0) -> None:
        parent, _, name = path.rpartition("/")
        if parent not in self._nodes:
            self._create(parent, b"")
        self._nodes[parent].children[name] = None
        self._nodes[path] = _Stored(value, session)
        self._fire(self._node_watches, path)
        self._fire(self._child_watches, parent)

    def _remove(self, path: str) -> None:
        del self._nodes[path]
        parent, _, name = path.rpartition("/")
        del self._nodes[parent].children[name]
        self._fire(self._node_watches, path)
        self._fire(self._child_watches, parent)

    def _fire(self, watches: dict[str, dict[int, None]], path: str) -> None:
        for session in watches.pop(path, ()):
            self._fired.append((session, path))
