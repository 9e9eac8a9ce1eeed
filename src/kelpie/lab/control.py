"""The control API: the faults over HTTP, for people with curl and for tests in other languages.

    GET    /state                                    brokers, topics, groups
    GET    /metrics                                  for Prometheus
    GET    /brokers/{id}/metrics                     what it counts by group, under KoP's names
    GET    /mappings                                 the mapping tree, for kelpie doctor --evidence
    POST   /brokers/{id}/kill|stop|start|restart     also isolate, rejoin, freeze, thaw
    POST   /partitions/{topic}/{p}/leaderless        also elect {"unclean": true}, isr {"isr": [1]}
    GET    /faults                                   all, with how often they struck
    POST   /faults                                   a new one: see below
    GET    /faults/{id}
    DELETE /faults/{id}                              lift it

A new fault is an object with a filter and one action:

    {"api": "Heartbeat", "group": "billing-*", "count": 3, "error": 16}
    {"api": "Fetch", "node": 2, "delay_ms": 500}      null: until it is lifted
    {"api": "OffsetCommit", "disconnect": true, "after": true}
    {"silence": true}, {"observe": true}, {"stall": true, "client": "app-*", "duration_s": 20}
    {"slow_load_ms": 5000, "partition": 12}, {"lag": 2, "topic": "orders", "partition": 0}
    {"hold_mappings": true, "node": 2, "operation": "delete"}    also refuse_mappings, path
    {"lose_offsets": "group"}, {"expire_offsets": "group"}    null: of all groups

Names in paths are percent-encoded. A refusal is {"error": "what is wrong"} with a status of 4xx. The API has
no password: it listens on loopback only, and refuses what a web page in a browser would send: an Origin, or a
Host that is no name of loopback.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from kelpie.lab.brokers import Brokers
from kelpie.lab.faults import Fault, Observation
from kelpie.lab.http import MOST_HEADER_BYTES, Request, RequestRefused, Response, read_request
from kelpie.lab.injection import Injection
from kelpie.lab.lab_errors import LabError
from kelpie.lab.network import HOST, Acceptor, bind_socket
from kelpie.lab.orders import Body, fault_ordered
from kelpie.model.prometheus_text import CONTENT_TYPE

log = logging.getLogger("kelpie.lab")

_MOST_CLIENTS = 64
_LAST_WORDS_S, _MOST_LAST_WORDS = 1.0, 64
_WRITE_LIMIT_S = 10.0
_METHODS: dict[str, tuple[str, ...]] = {
    "state": ("GET",),
    "metrics": ("GET",),
    "mappings": ("GET",),
    "brokers": ("GET", "POST"),
    "partitions": ("POST",),
    "faults": ("GET", "POST", "DELETE"),
}


class Control:
    """The server of the control API of one cluster."""

    def __init__(self, brokers: Brokers, injection: Injection) -> None:
        self._brokers = brokers
        self._injection = injection
        self._acceptor: Acceptor | None = None
        self._clients: set[asyncio.Task[None]] = set()
        self.address = ""

    def open(self, port: int) -> None:
        """Raises LabError when the port cannot be had."""
        bound = bind_socket(port)
        try:
            self._acceptor = Acceptor(bound, self._new_client, self._brokers.driver.loop)
        except OSError as error:
            bound.close()
            raise LabError(f"Port {port} of {HOST} cannot be had ({error.strerror}).") from None
        self.address = f"http://{HOST}:{bound.getsockname()[1]}"

    async def close(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.settled()
        for task in tuple(self._clients):
            task.cancel()
        while self._clients:
            await asyncio.wait(self._clients)

    def _new_client(self) -> asyncio.StreamReaderProtocol:
        loop = self._brokers.driver.loop
        reader = asyncio.StreamReader(MOST_HEADER_BYTES, loop)
        return asyncio.StreamReaderProtocol(reader, self._client, loop)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                if len(self._clients) > _MOST_CLIENTS:
                    await _send(writer, _refusal(503, "Too many connections."), keep_alive=False)
                else:
                    await self._serve(reader, writer)
        finally:
            if task.cancelling():
                writer.transport.abort()
            await _close(writer)
            self._clients.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                request = await read_request(reader)
            except RequestRefused as refused:
                await _send(writer, _refusal(refused.status, str(refused)), keep_alive=False)
                await _hear_out(reader, writer)
                return
            if request is None:
                return
            response = await self._answer(request)
            keep = request.keep_alive
            await _send(writer, response, keep_alive=keep, with_body=request.method != "HEAD")
            if not keep:
                return

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._route(request)
        except RequestRefused as refused:
            allow = {"Allow": refused.allow} if refused.allow else {}
            return _refusal(refused.status, str(refused), allow)
        except LabError as error:
            return _refusal(409 if "already" in str(error) else 400, str(error))
        except Exception as error:
            self._brokers.driver.defect("the control API failed", error)
            return _refusal(500, f"The lab went wrong: {error!r}")

    async def _route(self, request: Request) -> Response:
        known = _METHODS.get(request.path[0]) if request.path else None
        if known is None:
            raise RequestRefused(404, f"There is no such path. There are /{', /'.join(_METHODS)}.")
        method = "GET" if request.method == "HEAD" else request.method
        if method not in known:
            raise RequestRefused(405, f"{method} cannot be done here.", allow=", ".join(known))
        match (method, *request.path):
            case ("GET", "state"):
                return _json(200, self._brokers.describe())
            case ("GET", "metrics"):
                return Response(200, self._brokers.metrics().encode(), CONTENT_TYPE)
            case ("GET", "mappings"):
                listing = await self._brokers.attribution.listing(dated=True)
                return Response(200, listing.encode(), "text/plain; charset=utf-8")
            case ("GET", "brokers", node, "metrics"):
                scrape = self._brokers.scrape(self._known(_number(node, "broker")))
                return Response(200, scrape.encode(errors="replace"), CONTENT_TYPE)
            case ("POST", "brokers", node, action):
                return _json(200, await self._broker(_number(node, "broker"), action))
            case ("POST", "partitions", topic, partition, action):
                body = Body.parse(request.body)
                return _json(200, self._partition(topic, _number(partition, "partition"), action, body))
            case ("GET", "faults"):
                return _json(200, {"faults": [described(fault) for fault in self._injection.faults]})
            case ("POST", "faults"):
                fault = fault_ordered(self._injection, Body.parse(request.body))
                return _json(201, described(fault))
            case ("GET", "faults", wanted):
                return _json(200, described(self._fault(wanted)))
            case ("DELETE", "faults", wanted):
                fault = self._fault(wanted)
                fault.lift()
                return _json(200, described(fault))
        raise RequestRefused(404, f"{method} /{'/'.join(request.path)} does not exist.")

    async def _broker(self, node_id: int, action: str) -> dict[str, Any]:
        injection = self._injection
        self._known(node_id)
        actions: dict[str, Callable[[int], Any | Awaitable[Any]]] = {
            "kill": injection.kill,
            "stop": injection.stop,
            "start": injection.start,
            "restart": injection.restart,
            "isolate": injection.isolate,
            "rejoin": injection.rejoin,
            "wall-off": injection.wall_off,
            "freeze": injection.freeze_metadata,
            "thaw": injection.thaw_metadata,
        }
        do = actions.get(action)
        if do is None:
            raise RequestRefused(404, f"A broker cannot {action!r}; it can {', '.join(actions)}.")
        done = do(node_id)
        if isinstance(done, Awaitable):
            done = await done
        return {"node_id": node_id, "alive": self._brokers.is_alive(node_id), **_caused(done)}

    def _known(self, node_id: int) -> int:
        if node_id not in self._brokers.node_ids:
            raise RequestRefused(
                404, f"There is no broker {node_id}; there are {list(self._brokers.node_ids)}."
            )
        return node_id

    def _partition(self, topic: str, partition: int, action: str, body: Body) -> dict[str, Any]:
        injection = self._injection
        fault: Fault | None = None
        match action:
            case "leaderless":
                body.end()
                fault = injection.make_leaderless(topic, partition)
            case "elect":
                unclean = body.switch("unclean")
                body.end()
                injection.elect(topic, partition, unclean=unclean)
            case "isr":
                isr = body.numbers("isr")
                body.end()
                fault = injection.shrink_isr(topic, partition, isr)
            case _:
                raise RequestRefused(404, f"A partition has no {action!r}; it has leaderless, elect and isr.")
        return {"topic": topic, **self._brokers.describe()["topics"][topic][partition], **_caused(fault)}

    def _fault(self, wanted: str) -> Fault:
        fault = self._injection.faults.all.get(_number(wanted, "fault"))
        if fault is None:
            raise RequestRefused(404, f"There is no fault {wanted}.")
        return fault


def described(fault: Fault) -> dict[str, Any]:
    """A fault as plain data. Of what was observed, the latest."""
    plain: dict[str, Any] = {
        "id": fault.id,
        "what": fault.what,
        "hits": fault.hits,
        "active": fault.active,
    }
    if isinstance(fault, Observation):
        plain["requests"] = [
            {
                "at": seen.at,
                "node": seen.node_id,
                "api_key": seen.header.api_key,
                "version": seen.header.api_version,
                "correlation_id": seen.header.correlation_id,
                "client": seen.header.client_id,
            }
            for seen in fault.requests[-100:]
        ]
    return plain


def _caused(fault: object) -> dict[str, Any]:
    return {"fault": fault.id} if isinstance(fault, Fault) else {}


def _number(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise RequestRefused(404, f"{text!r} is not the number of a {what}.")
    return int(text)


def _json(status: int, data: Any) -> Response:
    return Response(status, json.dumps(data, ensure_ascii=False, default=_plain).encode() + b"\n")


def _plain(value: Any) -> Any:
    """A value of a type that JSON does not have."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _refusal(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return replace(_json(status, {"error": message}), headers=headers or {})


async def _hear_out(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads on for a moment: closing at once would reset the connection, and the answer may be lost."""
    writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS_S):
            for _ in range(_MOST_LAST_WORDS):
                if not await reader.read(MOST_HEADER_BYTES):
                    return


async def _close(writer: asyncio.StreamWriter) -> None:
    """A client that does not read what is left is dropped: it would keep the connection for ever."""
    writer.close()
    try:
        with contextlib.suppress(OSError):
            await asyncio.wait_for(writer.wait_closed(), _WRITE_LIMIT_S)
    except (TimeoutError, asyncio.CancelledError):
        writer.transport.abort()


async def _send(
    writer: asyncio.StreamWriter, response: Response, *, keep_alive: bool, with_body: bool = True
) -> None:
    writer.write(response.encoded(keep_alive=keep_alive, with_body=with_body))
    try:
        await asyncio.wait_for(writer.drain(), _WRITE_LIMIT_S)
    except TimeoutError:
        writer.transport.abort()
        raise ConnectionAbortedError from None
