"""One connection to a broker: many requests may be under way; answers find theirs by the correlation id.

Every wait has a limit. Whatever goes wrong is a `ClientError`. A request whose time is up is forgotten, not
withdrawn: the broker answers it all the same, and the late answer is dropped.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from kelpie.client.address import Address
from kelpie.client.answer_sizes import LARGEST, UNASKED, largest_answer
from kelpie.client.background import in_background
from kelpie.client.client_errors import ClientError, Closed, TimedOut, Unreadable, unforeseen
from kelpie.client.settings import Settings
from kelpie.client.tls import explain
from kelpie.client.versions import BrokerVersions
from kelpie.questions.question import Question
from kelpie.wire.apis import NAMES
from kelpie.wire.framing import Frames, RequestHeader, decode_response, encode_request
from kelpie.wire.malformed import Malformed
from kelpie.wire.schema import declaration_of

if TYPE_CHECKING:
    from typing import Self

Answer = TypeVar("Answer")

_DECODED_AT_ONCE = 128 * 1024
"""Bytes. Longer answers are decoded beside the loop, so that time limits of others are kept meanwhile."""
_UNKNOWN = BrokerVersions({})


@dataclass(slots=True)
class Counters:
    """What talking to a cluster costs."""

    connections: int = 0
    requests: int = 0
    answers: int = 0
    bytes_in: int = 0
    by_api: Counter[str] = field(default_factory=Counter)
    """How many requests of each API."""


class Connection(asyncio.Protocol):
    """`async with await open_connection(address, settings) as connection: await connection.ask(…)`."""

    def __init__(self, address: Address, settings: Settings, counters: Counters | None = None) -> None:
        self.address = address
        self.settings = settings
        self.counters = counters if counters is not None else Counters()
        self.versions = _UNKNOWN
        self.session_ends: float | None = None
        """By the loop's clock: when the broker wants to see our credentials again."""
        self._frames = Frames(LARGEST)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._asked: dict[int, int] = {}
        """By correlation id: the APIs whose answers have not come. Some are not waited for any more."""
        self._bare: asyncio.Future[bytes] | None = None
        self._correlation = 0
        self._heard = False
        self._failure: ClientError | None = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    @property
    def is_open(self) -> bool:
        return self._failure is None

    @property
    def session_is_ending(self) -> bool:
        """Whether the broker will soon close the connection because credentials have an end (KIP-368)."""
        return self.session_ends is not None and asyncio.get_running_loop().time() >= self.session_ends

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """What the broker has shown, as Python's ssl decodes it. None: the connection is not encrypted."""
        shown = self._transport.get_extra_info("peercert")
        return shown if isinstance(shown, dict) and shown else None

    async def ask(self, request: Any, version: int | None = None, limit_s: float | None = None) -> Any:
        """The answer to one request, in the newest version that both sides speak unless one is given."""
        if version is None:
            version = self.versions.pick(type(request))
        frame = await self.ask_frame(request, version, limit_s)
        key = declaration_of(type(request)).api_key
        assert key is not None
        try:
            return await self._decoded(key, version, frame)
        except Malformed as error:
            raise Unreadable(
                f"{self.address} answered {NAMES[key]} v{version} with what cannot be read: {error}.",
                self.address,
            ) from None
        except Exception as error:
            raise unforeseen(error, self.address, f"to {NAMES[key]} v{version}") from error

    async def _decoded(self, key: int, version: int, frame: bytes) -> Any:
        # A network inside the process has a virtual clock, which does not wait for threads.
        if len(frame) <= _DECODED_AT_ONCE or self.settings.network is not None:
            return decode_response(key, version, frame)[1]
        return (await in_background(lambda: decode_response(key, version, frame)))[1]

    async def put(self, question: Question[Answer], limit_s: float | None = None) -> Answer:
        """The answer to a question, in the newest version that can carry it."""
        version = self.versions.pick_for(question)
        return self.read(question, await self.ask(question.request(version), version, limit_s), version)

    def read(self, question: Question[Answer], response: Any, version: int) -> Answer:
        """What a response says to a question. Raises Unreadable."""
        try:
            return question.answer(response, version)
        except Exception as error:
            raise unforeseen(error, self.address, f"to {question}") from error

    async def ask_frame(self, request: Any, version: int, limit_s: float | None = None) -> bytes:
        """The same, with the answer's bytes as they came."""
        key = declaration_of(type(request)).api_key
        assert key is not None
        self._correlation = correlation = (self._correlation + 1) & 0x7FFF_FFFF
        frame = encode_request(RequestHeader(key, version, correlation, self.settings.client_id), request)
        self.counters.by_api[NAMES[key]] += 1
        answer = self._send(frame)
        self._waiting[correlation] = answer
        self._asked[correlation] = key
        try:
            return await self._within(answer, limit_s, NAMES[key])
        finally:
            self._waiting.pop(correlation, None)

    async def ask_bare(self, payload: bytes) -> bytes:
        """A frame without header, and one back: how SASL went on before Kafka 1.0. One at a time."""
        answer = self._bare = self._send(len(payload).to_bytes(4) + payload)
        try:
            return await self._within(answer, None, "SASL")
        finally:
            self._bare = None

    async def close(self) -> None:
        """Ends the connection. Closing what has ended is harmless."""
        if self._failure is None:
            self._fail(Closed(f"The connection to {self.address} was closed here.", self.address))
            self._transport.close()
        try:
            async with asyncio.timeout(1.0):  # Encrypted connections say goodbye, and some brokers do not.
                await asyncio.shield(self._lost)
        except TimeoutError:
            self._transport.abort()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.counters.connections += 1

    def data_received(self, data: bytes) -> None:
        self.counters.bytes_in += len(data)
        if not self._heard and is_tls_alert(data):
            self._give_up(
                Closed(
                    f"{self.address} speaks TLS: the connection must be encrypted. Set security.protocol "
                    "to SSL, or SASL_SSL where the broker wants to know who you are.",
                    self.address,
                )
            )
            return
        try:
            frames = self._frames.feed(data)
        except Malformed:
            self._give_up(
                Unreadable(
                    f"What {self.address} answers is not Kafka's protocol; it begins with {data[:16]!r}. "
                    "Is it the port of a broker?",
                    self.address,
                )
            )
            return
        for frame in frames:
            self._heard = True
            self.counters.answers += 1
            correlation = int.from_bytes(frame[:4])
            if self._is_too_long(len(frame), correlation):
                return
            self._asked.pop(correlation, None)
            waiting = self._bare or self._waiting.pop(correlation, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(frame)
        if (announced := self._frames.announced) is not None:
            self._is_too_long(*announced)

    def _is_too_long(self, length: int, correlation: int) -> bool:
        """Gives up on a broker that answers with more than the API is worth."""
        key = self._asked.get(correlation)
        limit = UNASKED if key is None else largest_answer(key)
        if length <= limit:
            return False
        if key is None:
            said = f"sends {length} bytes that answer nothing Kelpie asked. Is it the port of a broker?"
        else:
            said = f"answers {NAMES[key]} with {length} bytes; Kelpie reads up to {limit}."
        self._give_up(Unreadable(f"{self.address} {said}", self.address))
        return True

    def connection_lost(self, error: Exception | None) -> None:
        if not self._lost.done():
            self._lost.set_result(None)
        if self._failure is not None:
            return
        if error is not None and self.settings.security.protocol.encrypted:
            explained = explain(error, self.address)
            if explained is not None:
                self._fail(explained)
                return
        self._fail(Closed(f"{self.address} closed the connection{self._hint(error)}", self.address))

    def _send(self, frame: bytes) -> "asyncio.Future[bytes]":
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        self.counters.requests += 1
        self._transport.write(frame)
        return asyncio.get_running_loop().create_future()

    async def _within(self, answer: "asyncio.Future[bytes]", limit_s: float | None, what: str) -> bytes:
        limit = self.settings.request_timeout_s if limit_s is None else limit_s
        try:
            async with asyncio.timeout(limit):
                return await answer
        except TimeoutError:
            raise TimedOut(
                f"{self.address} did not answer {what} within {limit:g} s.", self.address
            ) from None

    def _give_up(self, failure: ClientError) -> None:
        self._fail(failure)
        self._transport.abort()

    def _fail(self, failure: ClientError) -> None:
        self._failure = failure
        waiting = [*self._waiting.values(), *([self._bare] if self._bare is not None else [])]
        self._waiting.clear()
        for answer in waiting:
            if not answer.done():
                answer.set_exception(failure)
                answer.exception()  # So that asyncio does not complain if the answer is not awaited.

    def _hint(self, error: Exception | None) -> str:
        cause = f" ({error})" if error is not None and str(error) else ""
        protocol = self.settings.security.protocol
        if self._heard:
            secured = "." if protocol.authenticated else "; a listener that wants SASL does so."
            return f"{cause}{secured}"
        if protocol.encrypted:
            return f"{cause} without a word."
        return (
            f"{cause} without a word; a listener that wants TLS does so (security.protocol=SSL or SASL_SSL)."
        )


def is_tls_alert(data: bytes) -> bool:
    return len(data) >= 3 and data[0] == 0x15 and data[1] == 3 and data[2] <= 4
