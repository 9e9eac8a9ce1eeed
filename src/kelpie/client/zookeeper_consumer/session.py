"""One session with ZooKeeper, on kazoo, for asyncio.

Kazoo begins a new session by itself when one has expired. A request that was meant for the expired session
could then create ephemeral nodes in the new one, and nobody would know of them. So there is one kazoo client
for each session, and it is stopped in the moment in which kazoo hears of the expiry.

Kazoo also forgets all watches when a connection is lost. ZooKeeper's own client sets them again, and hears of
those whose node has changed meanwhile; so does this one.

Kazoo calls back from threads of its own; everything here reaches the listener on the loop.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from kelpie.client.background import in_background
from kelpie.client.zookeeper import ZooKeeperError, abandon, kazoo_exceptions, new_client
from kelpie.zookeeper.procedures import Answers
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

_ANY_VERSION = -1
_PARENT_TRIES = 5


class SessionListener(Protocol):
    def session_connected(self, session: "ZookeeperSession", session_id: int) -> None: ...

    def session_disconnected(self, session: "ZookeeperSession") -> None: ...

    def session_expired(self, session: "ZookeeperSession") -> None: ...

    def session_watch_fired(self, session: "ZookeeperSession", path: str) -> None: ...


class _ConnectionGone(Exception):
    """The connection was lost before the answer came."""


@dataclass(frozen=True, slots=True)
class _Watched:
    request: Children | Read
    stat: Any
    """Kazoo's description of the node; None if there is none."""

    @property
    def change(self) -> int | None:
        """The transaction that last changed what is watched: the node's children or its value."""
        if self.stat is None:
            return None
        zxid: int = self.stat.pzxid if isinstance(self.request, Children) else self.stat.mzxid
        return zxid


class ZookeeperSession:
    """`carry_out` answers the requests of the machine. Raises ZooKeeperError for a bad address."""

    def __init__(self, hosts: str, session_timeout_ms: int, listener: SessionListener) -> None:
        self._hosts = hosts
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._client = new_client(hosts, session_timeout_ms / 1000)
        self._client.add_listener(self._state_changed)
        self._is_over = False
        self._watchers: dict[str, Callable[[Any], None]] = {}
        """One for each path: kazoo keeps a set of them, so a second request does not add a second watch."""
        self._missed: set[str] = set()
        """Paths whose watches were lost with the connection."""
        self._watched: dict[str, _Watched] = {}
        self._renewals: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[Any]] = set()
        """For answers of kazoo, which says nothing more once it is stopped."""
        self.connections = 0

    @property
    def chroot(self) -> str:
        chroot: str = self._client.chroot
        return chroot

    def start(self) -> None:
        """Connect, and try until it works or the session is ended."""
        self._client.start_async()

    async def end(self) -> None:
        """Close the session: ZooKeeper removes its ephemeral nodes at once."""
        self._give_up()
        await in_background(self._close)

    async def abandon(self) -> None:
        """Break the connection, as the death of a process does."""
        self._give_up()
        await in_background(self._break)

    async def carry_out(self, requests: Sequence[Request]) -> Answers | None:
        """All answers; None if the connection is lost before. Raises ZooKeeperError."""
        first = [self._send(request) for request in requests]
        await asyncio.gather(*first, return_exceptions=True)
        answers: list[Answer] = []
        try:
            for request, sent in zip(requests, first, strict=True):
                answers.append(await self._answer(request, sent))
        except _ConnectionGone:
            return None
        except kazoo_exceptions().KazooException as error:
            reason = str(error) or type(error).__name__
            raise ZooKeeperError(
                f"ZooKeeper at {self._hosts} refused a request of the consumer ({request}): {reason}."
            ) from None
        return tuple(answers)

    async def exists(self, path: str) -> bool | None:
        """None if the connection is lost before the answer."""
        try:
            return await self._result(self._client.exists_async(path)) is not None
        except _ConnectionGone:
            return None

    # Requests.

    def _send(self, request: Request) -> "asyncio.Future[Any]":
        """The first step of a request; all requests of a batch take it one right after the other."""
        client = self._client
        match request:
            case Children(path, watch):
                return self._result(
                    client.get_children_async(path, self._watcher(path, watch), include_data=True)
                )
            case Read(path, watch):
                return self._result(client.get_async(path, watch=self._watcher(path, watch)))
            case CreateEphemeral(path, value):
                return self._result(client.create_async(path, value, ephemeral=True))
            case Put(path, value, -1):
                return self._result(client.create_async(path, value))
            case Put(path, value, version):
                wanted = _ANY_VERSION if version is None else version
                return self._result(client.set_async(path, value, wanted))
            case Delete(path):
                return self._result(client.delete_async(path))

    async def _answer(self, request: Request, sent: "asyncio.Future[Any]") -> Answer:
        exceptions = kazoo_exceptions()
        for _ in range(_PARENT_TRIES):
            try:
                result = await sent
                self._note_watch(request, result)
                return _success(request, result)
            except exceptions.NodeExistsError:
                return BadVersion() if isinstance(request, Put) else NodeExists()
            except exceptions.BadVersionError:
                return BadVersion()
            except exceptions.NoNodeError:
                further = await self._without_node(request)
                if not isinstance(further, asyncio.Future):
                    return further
                sent = further
        raise ZooKeeperError(
            f"{request.path} could not be created: the node above it vanishes again and again."
        )

    async def _without_node(self, request: Request) -> "Answer | asyncio.Future[Any]":
        """What follows from NoNode: an answer, or another try."""
        match request:
            case CreateEphemeral(path):
                await self._result(self._client.ensure_path_async(path.rpartition("/")[0]))
                return self._send(request)
            case Put(path, value, None | -1):
                parent = path.rpartition("/")[0]
                await self._result(self._client.ensure_path_async(parent))
                with suppress(kazoo_exceptions().NodeExistsError):
                    await self._result(self._client.create_async(path, value))
                    return Written(0)
                return self._send(request)
            case Put():
                return BadVersion()
            case Children(path, True) | Read(path, True):
                watcher = self._watcher(path, True)
                stat = await self._result(self._client.exists_async(path, watch=watcher))
                if stat is not None:
                    return self._send(request)
                self._note_watch(request, None)
                return NoNode()
            case _:
                return NoNode()

    def _result(self, asked: Any) -> "asyncio.Future[Any]":
        """What kazoo will answer, as a future of the loop."""
        result: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.add(result)
        result.add_done_callback(self._waiting.discard)
        if self._is_over:
            _settle(result, _ConnectionGone())
        else:
            asked.rawlink(lambda done: self._tell(_settle, result, done.exception or done.value))
        return result

    def _give_up(self) -> None:
        self._is_over = True
        for result in tuple(self._waiting):
            _settle(result, _ConnectionGone())

    # What kazoo's threads tell.

    def _watcher(self, path: str, watch: bool) -> Callable[[Any], None] | None:
        return self._watchers.setdefault(path, partial(self._fired, path)) if watch else None

    def _fired(self, path: str, event: Any) -> None:
        """Kazoo drops all watches when a connection is lost, and tells each with an event of type NONE."""
        self._tell(self._miss if event.type == "NONE" else self._fire, path)

    def _state_changed(self, state: str) -> None:
        if state == "CONNECTED":
            self._tell(self._connected, self._client.client_id[0])
        elif state == "SUSPENDED":
            self._tell(self._listener.session_disconnected, self)
        elif not self._is_over:
            self._is_over = True
            self._client._stopped.set()  # Kazoo would go on with a new session.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._expired)

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        if not self._is_over:
            with suppress(RuntimeError):  # The loop has been closed.
                self._loop.call_soon_threadsafe(call, *arguments)

    def _connected(self, session_id: int) -> None:
        self.connections += 1
        missed, self._missed = self._missed, set()
        self._listener.session_connected(self, session_id)
        for path in sorted(missed):
            renewal = self._loop.create_task(self._renew_watch(path))
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)

    def _note_watch(self, request: Request, result: Any) -> None:
        if isinstance(request, Children | Read) and request.watch:
            self._watched[request.path] = _Watched(request, None if result is None else result[1])

    async def _renew_watch(self, path: str) -> None:
        """Set a lost watch again. It fires if its node is not as it was."""
        watched = self._watched.get(path)
        if watched is not None:
            try:
                await self._answer(watched.request, self._send(watched.request))
            except _ConnectionGone:
                self._missed.add(path)
                return
            except (kazoo_exceptions().KazooException, ZooKeeperError):
                pass  # Whoever hears of the watch asks again, and gets the same error.
            else:
                if self._watched[path].change == watched.change:
                    return
        self._fire(path)

    def _expired(self) -> None:
        self._give_up()
        self._listener.session_expired(self)

    def _fire(self, path: str) -> None:
        self._listener.session_watch_fired(self, path)

    def _miss(self, path: str) -> None:
        self._missed.add(path)

    # The end, in a thread.

    def _close(self) -> None:
        with suppress(kazoo_exceptions().WriterNotClosedException):
            self._client.stop()
            self._client.close()

    def _break(self) -> None:
        with suppress(kazoo_exceptions().WriterNotClosedException):
            abandon(self._client)
            self._client.close()


def _success(request: Request, result: Any) -> Answer:
    match request:
        case Children():
            names, _ = result
            return Names(tuple(names))
        case Read():
            value, stat = result
            return Node(value or b"", stat.version, stat.ephemeralOwner)
        case Put():
            # A node that was just created has version 0; kazoo answers with its path.
            return Written(0 if isinstance(result, str) else result.version)
        case _:
            return Done()


def _settle(result: "asyncio.Future[Any]", outcome: Any) -> None:
    if result.done():
        return
    if not isinstance(outcome, Exception):
        result.set_result(outcome)
        return
    exceptions = kazoo_exceptions()
    gone = (exceptions.ConnectionLoss, exceptions.SessionExpiredError, exceptions.ConnectionClosedError)
    result.set_exception(_ConnectionGone() if isinstance(outcome, gone) else outcome)
    result.exception()  # So that asyncio does not complain if nobody waits for it any more.
