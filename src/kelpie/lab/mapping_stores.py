"""Where the brokers of a lab keep the mapping from clients to groups: in memory, or in a real ZooKeeper.

In ZooKeeper, each broker has a session of its own. That of a broker that is killed stays until the server
gives it up.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Protocol, TypeVar

from kelpie.attribution.requests import Request, Result
from kelpie.attribution.store import MemoryStore
from kelpie.client.mapping_store import ZooKeeperStore, opened
from kelpie.client.zookeeper import ZooKeeperError
from kelpie.lab.lab_errors import LabError
from kelpie.lab.mapping_session import StoreConnection, StoreFailed
from kelpie.observations.mapping_tree import StoredValue

T = TypeVar("T")

Tree = dict[str, StoredValue]

_LIMIT_S = 4.0
"""How long one request to ZooKeeper may take."""
_SESSION_S = 6.0


class MappingStore(Protocol):
    async def check(self) -> None:
        """Raises LabError if the store cannot be reached."""

    def connect(self) -> StoreConnection: ...

    async def tree(self, root: str) -> Tree | None:
        """All nodes below the root by path; None if there is no root. Raises LabError."""


class MemoryMappings:
    """One for all brokers; it lives as long as the cluster."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    async def check(self) -> None:
        """It is always there."""

    def connect(self) -> StoreConnection:
        return _MemoryConnection(self._store)

    async def tree(self, root: str) -> Tree | None:
        if self._store.version(root) is None:
            return None
        listing = self._store.listing(root)
        return {path: StoredValue(value, self._store.version(path) or 0) for path, value in listing.items()}


class _MemoryConnection:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def open(self) -> None:
        """It is always there."""

    async def carry_out(self, request: Request) -> Result:
        return self._store.carry_out(request)

    async def close(self) -> None:
        """There is no session to end."""

    async def abandon(self) -> None:
        """There is no session to lose."""


class ZooKeeperMappings:
    """`hosts` are written HOST:PORT[,…][/PATH]."""

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts

    async def check(self) -> None:
        await self._use(lambda _: None)

    def connect(self) -> StoreConnection:
        return _ZooKeeperConnection(self._hosts)

    async def tree(self, root: str) -> Tree | None:
        nodes = await self._use(lambda store: store.tree(root))
        if nodes is None:
            return None
        return {path: StoredValue(node.value, node.version) for path, node in nodes.items()}

    async def _use(self, work: Callable[[ZooKeeperStore], T]) -> T:
        def run() -> T:
            with opened(self._hosts, _LIMIT_S) as store:
                return work(store)

        try:
            return await asyncio.to_thread(run)
        except ZooKeeperError as error:
            raise LabError(str(error)) from None


class _ZooKeeperConnection:
    """A session in a thread of its own."""

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._thread = ThreadPoolExecutor(1, "kelpie-lab-zookeeper")
        self._session = ExitStack()
        self._store: ZooKeeperStore | None = None

    async def open(self) -> None:
        await self._in_thread(self._opened)

    async def carry_out(self, request: Request) -> Result:
        return await self._in_thread(self._carry_out, request)

    async def close(self) -> None:
        await self._in_thread(self._close)
        self._thread.shutdown(wait=False)

    async def abandon(self) -> None:
        await self._in_thread(self._abandon)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _opened(self) -> ZooKeeperStore:
        if self._store is None:
            try:
                self._store = self._session.enter_context(opened(self._hosts, _LIMIT_S, session_s=_SESSION_S))
            except ZooKeeperError as error:
                raise StoreFailed(str(error)) from None
        return self._store

    def _carry_out(self, request: Request) -> Result:
        store = self._opened()
        try:
            return store.carry_out(request)
        except Exception as error:  # Kazoo raises many kinds, and each means that the answer is not known.
            raise StoreFailed(str(error)) from error

    def _close(self) -> None:
        with suppress(ZooKeeperError):
            self._session.close()

    def _abandon(self) -> None:
        if self._store is not None:
            self._store.abandon()
        self._close()
