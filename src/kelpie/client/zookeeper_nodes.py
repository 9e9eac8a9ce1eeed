"""Many nodes of ZooKeeper in few requests.

ZooKeeper 3.6 and later read many nodes, or list the children of many, in one request, multiRead. Kazoo has
no such request, so it is written here; kazoo's queue takes any request that can serialize itself and read its
answer. 20,000 nodes then take about 0.3 s. One get for each takes 16 s, and kazoo's asynchronous gets take as
long: the time goes into kazoo's work for each request, not into waiting.

A server before 3.6 answers "unimplemented" and closes the connection. Then asynchronous gets are used.
"""

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from kelpie.client.zookeeper import ZooKeeperError, kazoo_exceptions
from kelpie.model.time import Instant
from kelpie.observations.zookeeper_tree import ZooKeeperNode

MOST_NODES = 1_000_000
_LARGEST_REQUEST = 500_000
"""Bytes of paths. A server refuses requests above jute.maxbuffer, 1 MB."""
_MOST_PATHS = 2_000
_MULTI_READ, _GET_DATA, _GET_CHILDREN, _ERROR = 22, 4, 8, -1
_HEADER = struct.Struct("!i?i")
_INT = struct.Struct("!i")
_STAT = struct.Struct("!16xqqi8xq4xi8x")
"""Of the eleven numbers: when it was created and modified, its version, its session, its children."""
_END = _HEADER.pack(_ERROR, True, -1)


T = TypeVar("T")
Parse = Callable[[bytes, int], tuple[T, int]]
"""Reads one result of an answer, from an offset on; the result, and where it ends."""


class TreeNode(NamedTuple):
    """A node's value, and what its stat says."""

    value: bytes
    version: int
    children: int
    modified: Instant
    created: Instant
    session: int
    """Whose end deletes it; 0: it is not ephemeral."""

    def as_text(self) -> ZooKeeperNode:
        """As rows are made of it."""
        text = self.value.decode("utf-8", "replace") if self.value else None
        return ZooKeeperNode(text, self.modified, self.created, self.session)

    @classmethod
    def of(cls, value: bytes | None, stat: Sequence[int]) -> "TreeNode":
        """`stat`: the eleven numbers in ZooKeeper's order, as kazoo has them, too."""
        return cls(value or b"", stat[4], stat[9], stat[3], stat[2], stat[7])


class _MultiRead(Generic[T]):
    """One read for each path. The answer has what was read, or None where there is no such node."""

    type = _MULTI_READ

    def __init__(self, kind: int, parse: "Parse[T]", paths: Sequence[str]) -> None:
        self._kind, self._parse, self._paths = kind, parse, paths

    def serialize(self) -> bytearray:
        """For each path: a header with the kind of read, the path, and whether to watch."""
        request = bytearray()
        for path in self._paths:
            name = path.encode()
            request += _HEADER.pack(self._kind, False, -1) + _INT.pack(len(name)) + name + b"\0"
        return request + _END

    def deserialize(self, answer: bytes, offset: int) -> list[T | None]:
        """For each path: a header, then what was read, or the code of an error."""
        results: list[T | None] = []
        while True:
            kind, is_end, _ = _HEADER.unpack_from(answer, offset)
            offset += _HEADER.size
            if is_end:
                return results
            if kind == _ERROR:
                _raise_unless_missing(_INT.unpack_from(answer, offset)[0])
                offset += _INT.size
                results.append(None)
                continue
            result, offset = self._parse(answer, offset)
            results.append(result)


def _parse_node(answer: bytes, offset: int) -> tuple[TreeNode, int]:
    value, offset = _parse_bytes(answer, offset)
    created, modified, version, session, children = _STAT.unpack_from(answer, offset)
    return TreeNode(value, version, children, modified, created, session), offset + _STAT.size


def _parse_names(answer: bytes, offset: int) -> tuple[list[str], int]:
    count = _INT.unpack_from(answer, offset)[0]
    offset += _INT.size
    names = []
    for _ in range(count):
        name, offset = _parse_bytes(answer, offset)
        names.append(name.decode("utf-8", "replace"))
    return names, offset


def _parse_bytes(answer: bytes, offset: int) -> tuple[bytes, int]:
    length = _INT.unpack_from(answer, offset)[0]
    offset += _INT.size
    end = offset + max(length, 0)
    return bytes(answer[offset:end]), end


def _raise_unless_missing(code: int) -> None:
    exceptions = kazoo_exceptions()
    error = exceptions.EXCEPTIONS[code]
    if error is not exceptions.NoNodeError:
        raise error()


class TreeReader:
    """Reads nodes through a connected kazoo client. Every call ends within its time limit.

    Raises ZooKeeperError for a tree that takes longer, and what kazoo raises.
    """

    def __init__(self, client: Any, hosts: str, limit_s: float) -> None:
        self._client, self._hosts, self._limit_s = client, hosts, limit_s
        self._has_multi_read = True

    def tree(self, root: str) -> dict[str, TreeNode] | None:
        """All nodes below a node, by path. None: that node does not exist."""
        return self._below(root, time.monotonic() + self._limit_s)

    def trees(self, roots: Sequence[str]) -> dict[str, TreeNode]:
        """These nodes and all nodes below them, by path; those that do not exist are left out."""
        deadline = time.monotonic() + self._limit_s
        nodes = self._read(roots, deadline)
        for root in [path for path, node in nodes.items() if node.children]:
            nodes |= self._below(root, deadline) or {}
        return nodes

    def nodes(self, paths: Sequence[str]) -> dict[str, TreeNode]:
        """These nodes; those that do not exist are left out."""
        return self._read(paths, time.monotonic() + self._limit_s)

    def _below(self, root: str, deadline: float) -> dict[str, TreeNode] | None:
        try:
            names = self._client.get_children_async(root).get(timeout=self._left(deadline))
        except kazoo_exceptions().NoNodeError:
            return None
        nodes: dict[str, TreeNode] = {}
        paths = [f"{root}/{name}" for name in names]
        while paths:
            if len(nodes) + len(paths) > MOST_NODES:
                raise ZooKeeperError(
                    f"ZooKeeper at {self._hosts} has more than {MOST_NODES:,} nodes below {root}."
                )
            level = self._read(paths, deadline)
            nodes |= level
            paths = self._children([path for path, node in level.items() if node.children], deadline)
        return nodes

    def _read(self, paths: Sequence[str], deadline: float) -> dict[str, TreeNode]:
        nodes = self._batched(_GET_DATA, _parse_node, paths, deadline)
        return self._get_each(paths, deadline) if nodes is None else nodes

    def _batched(
        self, kind: int, parse: "Parse[T]", paths: Sequence[str], deadline: float
    ) -> dict[str, T] | None:
        """Many reads in one request. None: there is one path only, or the server has no such request."""
        if self._has_multi_read and len(paths) > 1:
            try:
                return self._multi_read(kind, parse, paths, deadline)
            except kazoo_exceptions().UnimplementedError:
                self._has_multi_read = False
                # The server has closed the connection.
                self._client.stop()
                self._client.start(timeout=self._left(deadline))
        return None

    def _multi_read(
        self, kind: int, parse: "Parse[T]", paths: Sequence[str], deadline: float
    ) -> dict[str, T]:
        results: dict[str, T] = {}
        parts = list(_parts(paths))
        # The first one alone shows whether the server knows the request.
        for together in (parts[:1], parts[1:]):
            answers = []
            for part in together:
                answer = self._client.handler.async_result()
                request = _MultiRead(kind, parse, [self._client.chroot + path for path in part])
                self._client._call(request, answer)
                answers.append((part, answer))
            for part, answer in answers:
                read = answer.get(timeout=self._left(deadline))
                results |= {
                    path: result for path, result in zip(part, read, strict=True) if result is not None
                }
        return results

    def _get_each(self, paths: Sequence[str], deadline: float) -> dict[str, TreeNode]:
        nodes: dict[str, TreeNode] = {}
        missing = kazoo_exceptions().NoNodeError
        for part in _parts(paths):
            answers = [(path, self._client.get_async(path)) for path in part]
            for path, answer in answers:
                try:
                    value, stat = answer.get(timeout=self._left(deadline))
                except missing:
                    continue  # It was deleted after its parent was listed.
                nodes[path] = TreeNode.of(value, stat)
        return nodes

    def _children(self, parents: Sequence[str], deadline: float) -> list[str]:
        names = self._batched(_GET_CHILDREN, _parse_names, parents, deadline)
        if names is None:
            names = self._list_each(parents, deadline)
        return [f"{parent}/{name}" for parent, children in names.items() for name in children]

    def _list_each(self, parents: Sequence[str], deadline: float) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        missing = kazoo_exceptions().NoNodeError
        for parent, answer in [(parent, self._client.get_children_async(parent)) for parent in parents]:
            try:
                names[parent] = answer.get(timeout=self._left(deadline))
            except missing:
                continue
        return names

    def _left(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ZooKeeperError(f"ZooKeeper at {self._hosts} was not read within {self._limit_s:g} s.")
        return left


def _parts(paths: Iterable[str]) -> Iterable[list[str]]:
    part: list[str] = []
    size = 0
    for path in paths:
        part.append(path)
        size += len(path) * 3
        if len(part) == _MOST_PATHS or size > _LARGEST_REQUEST:
            yield part
            part, size = [], 0
    if part:
        yield part
