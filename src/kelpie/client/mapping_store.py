"""The mapping store in ZooKeeper: carries out the requests of `kelpie.attribution.requests`, as KoP does.

A Put without version sets the node, else creates it and the nodes above it. Requests of one store keep their
order: they go through one session.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kelpie.attribution.requests import Create, Delete, Put, Read, ReadChildren, Request, Result
from kelpie.client.zookeeper import abandon, connected, kazoo_exceptions
from kelpie.client.zookeeper_nodes import TreeNode, TreeReader

LIMIT_S = 10.0
_ANY_VERSION = -1
_UNDER_WAY = 1_000


class ZooKeeperStore:
    """A mapping tree in ZooKeeper. Every call blocks, for the time limit at most.

    Raises what kazoo raises, which `opened` turns into ZooKeeperError.
    """

    def __init__(self, client: Any, hosts: str, limit_s: float) -> None:
        self._client, self._limit_s = client, limit_s
        self._reader = TreeReader(client, hosts, limit_s)

    def tree(self, root: str) -> dict[str, TreeNode] | None:
        """All nodes below the root by path. None: there is no such root."""
        return self._reader.tree(root)

    def abandon(self) -> None:
        """Breaks the connection without ending the session, as the death of a process does."""
        abandon(self._client)

    def carry_out(self, request: Request) -> Result:
        """One request; its result, as `kelpie.attribution.requests` says."""
        if isinstance(request, Read):
            return self._value(request.path)
        if isinstance(request, ReadChildren):
            return self._children(request.path)
        self.write([request])
        return None

    def write(self, requests: Sequence[Put | Create | Delete]) -> list[bool]:
        """Carries out many writes, each to a path of its own, without waiting for each answer.

        For each: whether it took effect. It does not where the node has another version, exists already or
        no longer, or still has children.
        """
        assert len({request.path for request in requests}) == len(requests), "one write for each path"
        done: list[bool] = []
        for start in range(0, len(requests), _UNDER_WAY):
            part = requests[start : start + _UNDER_WAY]
            answers = [(request, self._send(request)) for request in part]
            done += [self._finish(request, answer) for request, answer in answers]
        return done

    def _send(self, request: Put | Create | Delete) -> Any:
        if isinstance(request, Create):
            return self._client.create_async(request.path, request.value, makepath=True)
        version = _ANY_VERSION if request.version is None else request.version
        if isinstance(request, Put):
            return self._client.set_async(request.path, request.value, version)
        return self._client.delete_async(request.path, version)

    def _finish(self, request: Put | Create | Delete, answer: Any) -> bool:
        exceptions = kazoo_exceptions()
        try:
            answer.get(timeout=self._limit_s)
        except (exceptions.BadVersionError, exceptions.NotEmptyError, exceptions.NodeExistsError):
            return False
        except exceptions.NoNodeError:
            if isinstance(request, Put) and request.version is None:
                return self._create_or_set(request)
            return False
        return True

    def _create_or_set(self, request: Put) -> bool:
        """A node that another broker creates in the meantime is set, as KoP's store does."""
        creating = self._client.create_async(request.path, request.value, makepath=True)
        try:
            creating.get(timeout=self._limit_s)
        except kazoo_exceptions().NodeExistsError:
            self._client.set_async(request.path, request.value).get(timeout=self._limit_s)
        return True

    def _value(self, path: str) -> bytes | None:
        node = self._reader.nodes([path]).get(path)
        return node.value if node is not None else None

    def _children(self, path: str) -> dict[str, bytes]:
        try:
            names = self._client.get_children_async(path).get(timeout=self._limit_s)
        except kazoo_exceptions().NoNodeError:
            return {}
        nodes = self._reader.nodes([f"{path}/{name}" for name in names])
        return {child.removeprefix(f"{path}/"): node.value for child, node in nodes.items()}


@contextmanager
def opened(
    hosts: str, limit_s: float = LIMIT_S, *, read_only: bool = False, session_s: float | None = None
) -> Iterator[ZooKeeperStore]:
    """A store at `hosts`, written HOST:PORT[,…][/PATH]. Raises ZooKeeperError, also while it is used."""
    with connected(hosts, limit_s, read_only=read_only, of_kafka=False, session_s=session_s) as client:
        yield ZooKeeperStore(client, hosts, limit_s)
