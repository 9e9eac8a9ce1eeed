"""One connection to a broker: requests in, answers out.

A broker works on one request of a connection at a time, as Kafka does: it begins the next one after it has
answered the one before, so answers leave in the order of the requests. As Kafka does, it closes a connection
that sends a request which it cannot read, or which its release does not know. There are two exceptions: every
client can read the answer to ApiVersions in too new a version (KIP-511); and Kafka 0.9 ignores a request that
it does not know, and keeps the connection.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kelpie.broker.call import Call, ClientConnection
from kelpie.broker.image import Endpoint
from kelpie.broker.personas import Persona
from kelpie.broker.refusals import refusal
from kelpie.errors import ErrorCode
from kelpie.lab.broker_life import BrokerLife
from kelpie.lab.driver import FabricDriver
from kelpie.lab.faults import Faults, RequestFault
from kelpie.lab.metrics import Meter, errors_in
from kelpie.wire.api.api_versions import ApiVersion, ApiVersionsResponse
from kelpie.wire.api.metadata import MetadataResponseBroker
from kelpie.wire.apis import NAMES
from kelpie.wire.framing import (
    API_VERSIONS,
    LARGEST_FRAME,
    Frames,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    encode_response,
)
from kelpie.wire.malformed import Malformed

log = logging.getLogger("kelpie.lab")

_PRODUCE = 0
_METADATA = 3
_MOST_WAITING_FRAMES = 64
_MOST_WAITING_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ServedBroker:
    """What all connections to one broker share."""

    node_id: int
    driver: FabricDriver
    faults: Faults
    persona: Persona
    neighbours: Callable[[], list[Endpoint]]
    """The brokers that are alive, this one among them."""
    largest_frame: int = LARGEST_FRAME
    meter: Meter = field(default_factory=Meter)
    life: Callable[[], BrokerLife | None] = lambda: None
    """What it counts since its start; None if it counts no traffic."""


class BrokerConnection(asyncio.Protocol):
    """One connection: the requests that wait, and the one that the broker works on."""

    def __init__(
        self,
        broker: ServedBroker,
        *,
        made: "Callable[[BrokerConnection], bool]",
        lost: "Callable[[BrokerConnection], None]",
    ) -> None:
        """`made` returns whether the broker still serves when the connection has been made."""
        self.node_id = broker.node_id
        self._broker = broker
        self._made = made
        self._lost = lost
        self.client_id: str | None = None
        """As the latest request gave it."""
        self.groups: set[str] = set()
        """The groups that requests of this connection have named."""
        self.closed = False
        self.peer = ""
        self._faults = broker.faults
        self._meter = broker.meter
        self._frames = Frames(broker.largest_frame)
        self._waiting: deque[tuple[bytes, float]] = deque()
        """Requests, and when they came."""
        self._waiting_bytes = 0
        self._serial = 0
        self._busy = False
        self._pumping = False
        self._writable = True
        self._reading = True
        self._stalled = False
        self._held: list[bytes] = []
        self._client_host = ""
        self._connection = ClientConnection()
        self._life: BrokerLife | None = None
        self._times = (0.0, 0.0)
        """When the request came that the broker works on, and when the work began."""
        self._transport: asyncio.Transport

    # Events of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self._client_host = f"/{peer[0]}"
        self.peer = f"{peer[0]}:{peer[1]}"
        self._life = self._broker.life()
        self._meter.connections += 1
        self._meter.connections_accepted += 1
        if not self._made(self):
            self.close(abruptly=True)  # The broker died while it accepted the connection.
        elif self._faults.stalls:
            self.review()

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        self._meter.bytes_in += len(data)
        if self._life is not None:
            self._life.bytes_in += len(data)
        try:
            frames = self._frames.feed(data)
        except Malformed as error:
            self._reject(str(error))
            return
        if frames:
            now_s = self._broker.driver.loop.time()
            self._waiting.extend((frame, now_s) for frame in frames)
            self._waiting_bytes += sum(map(len, frames))
            self._pump()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._pump()

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._forget()
        self._lost(self)

    # Commands of the lab.

    def close(self, *, abruptly: bool = False) -> None:
        self._forget()
        if abruptly:
            self._transport.abort()
        else:
            self._transport.close()

    def review(self) -> None:
        """Check whether a stall holds this connection. Then nothing is read and nothing is written."""
        stalled = self._faults.is_stalled(self)
        if stalled == self._stalled or self.closed:
            return
        self._stalled = stalled
        if not stalled:
            held, self._held = self._held, []
            self._transport.writelines(held)
        self._pump()

    # Requests in, answers out.

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._waiting and not (self._busy or self._stalled or self.closed) and self._writable:
                frame, arrived_s = self._waiting.popleft()
                self._waiting_bytes -= len(frame)
                self._take(frame, arrived_s)
        finally:
            self._pumping = False
        reading = not self._stalled and (
            len(self._waiting) < _MOST_WAITING_FRAMES and self._waiting_bytes < _MOST_WAITING_BYTES
        )
        if reading != self._reading and not self.closed:
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _take(self, frame: bytes, arrived_s: float) -> None:
        try:
            header, message = self._understood(frame)
        except (Malformed, UnsupportedVersion) as error:
            self._refuse_to_understand(frame, error)
            return
        self.client_id = header.client_id
        group = getattr(message, "group_id", None)
        if group is not None:
            self.groups.add(group)
        if self._faults.stalls:
            self.review()
            if self._stalled:
                self._waiting.appendleft((frame, arrived_s))
                self._waiting_bytes += len(frame)
                return
        self._meter.requests[header.api_key] += 1
        if log.isEnabledFor(logging.DEBUG):
            log.debug("broker %d < %s %s %r", self.node_id, self.peer, _named(header), message)
        self._busy = True
        self._serial += 1
        if self._life is not None:
            self._times = (arrived_s, self._broker.driver.loop.time())
        answer = partial(self._answer, self._serial, header)
        refuse = partial(self._refused, self._serial)
        call = Call(header, message, self._client_host, answer, refuse, connection=self._connection)
        struck = self._faults.strike(self, header, message) if self._faults.watching else None
        if struck is None:
            self._broker.driver.deliver(self.node_id, call)
        else:
            self._suffer(struck, call, self._serial)

    def _understood(self, frame: bytes) -> tuple[RequestHeader, Any]:
        header, _ = decode_request_header(frame)
        if not self._broker.persona.serves(header.api_key, header.api_version):
            raise UnsupportedVersion(header)
        return decode_request(frame)

    def _refuse_to_understand(self, frame: bytes, error: Exception) -> None:
        if isinstance(error, UnsupportedVersion) and error.header.api_key == API_VERSIONS:
            known = self._broker.persona.versions.get(API_VERSIONS)
            if known is not None and known.last is not None:
                # As ApiVersionsRequest.getErrorResponse: the versions of this one API, in version 0.
                api_versions = ApiVersion(
                    api_key=API_VERSIONS, min_version=known.first, max_version=known.last
                )
                response = ApiVersionsResponse(
                    error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[api_versions]
                )
                self._meter.requests[API_VERSIONS] += 1
                self._meter.errors[API_VERSIONS, ErrorCode.UNSUPPORTED_VERSION] += 1
                self._write(encode_response(API_VERSIONS, 0, error.header.correlation_id, response))
                return
        if isinstance(error, UnsupportedVersion):
            reason = f"{_named(error.header)} is unknown to Kafka {self._broker.persona.name}"
            if self._broker.persona.ignores_the_unknown:
                self._meter.rejected += 1
                log.info("broker %d leaves %s without an answer: %s", self.node_id, self.peer, reason)
                return
        else:
            reason = f"{error}; the request begins with {frame[:16].hex(' ')}"
        self._reject(reason)

    def _suffer(self, fault: RequestFault, call: Call, serial: int) -> None:
        """A fault has struck this request."""
        log.info("broker %d: %s strikes %s of %s", self.node_id, fault, _named(call.header), self.peer)
        if not fault.action.after:
            self._act(fault, call, partial(self._hand_over, call, serial))
            return
        true_answer = call.answer

        def suffer_answer(response: Any) -> None:
            if not self.closed and serial == self._serial:
                call.answer = true_answer
                self._act(fault, call, partial(true_answer, response))

        call.answer = suffer_answer
        self._broker.driver.deliver(self.node_id, call)

    def _act(self, fault: RequestFault, call: Call, proceed: Callable[[], None]) -> None:
        """Do what the fault does to a request, or to its answer. `proceed` is what it delays."""
        action = fault.action
        if action.kind == "error":
            self._answer_with_error(call, action.code)
        elif action.kind == "delay":
            fault.hold(proceed, action.delay_ms)
        elif action.kind == "disconnect":
            self.close(abruptly=True)

    def _hand_over(self, call: Call, serial: int) -> None:
        if not self.closed and serial == self._serial:
            self._broker.driver.deliver(self.node_id, call)

    def _answer_with_error(self, call: Call, code: ErrorCode) -> None:
        if call.header.api_key == _PRODUCE and call.message.acks == 0:
            # There is no answer that could carry the error: Kafka closes the connection.
            self.close()
        else:
            response = refusal(call.header, call.message, code)
            if call.header.api_key == _METADATA:
                # Without brokers in it, clients would drop the answer before they see the error.
                response.brokers = [
                    MetadataResponseBroker(
                        node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack
                    )
                    for broker in self._broker.neighbours()
                ]
            call.answer(response)

    def _answer(self, serial: int, header: RequestHeader, response: Any) -> None:
        if self.closed:
            return
        if serial != self._serial or not self._busy:
            error = RuntimeError(f"{_named(header)} of {self.peer} was answered twice")
            self._broker.driver.defect(f"broker {self.node_id}", error)
            return
        if response is not None:
            try:
                encoded = encode_response(header.api_key, header.api_version, header.correlation_id, response)
            except Exception as error:
                self._broker.driver.defect(f"broker {self.node_id} cannot encode {_named(header)}", error)
                self.close()
                return
            errors = errors_in(response)
            if self._life is not None:
                arrived_s, begun_s = self._times
                self._life.latencies.add(
                    header.api_key,
                    success=not errors,
                    arrived_s=arrived_s,
                    begun_s=begun_s,
                    now_s=self._broker.driver.loop.time(),
                )
            if errors:
                for code in set(errors):
                    self._meter.errors[header.api_key, code] += 1
                self._faults.answered(errors)
            if log.isEnabledFor(logging.DEBUG):
                log.debug("broker %d > %s %s %r", self.node_id, self.peer, _named(header), response)
            self._write(encoded)
        self._busy = False
        if self._waiting and not self._pumping:
            # Not now: the fabric may be in the middle of a change.
            self._broker.driver.loop.call_soon(self._pump)

    def _write(self, encoded: bytes) -> None:
        self._meter.bytes_out += len(encoded)
        if self._life is not None:
            self._life.bytes_out += len(encoded)
        if self._stalled:
            self._held.append(encoded)
        else:
            self._transport.write(encoded)

    def _refused(self, serial: int) -> None:
        if serial == self._serial and not self.closed:
            self._reject("the broker refused the request")

    def _reject(self, reason: str) -> None:
        self._meter.rejected += 1
        log.info("broker %d closes the connection of %s: %s", self.node_id, self.peer, reason)
        self.close()

    def _forget(self) -> None:
        if not self.closed and self._life is not None:
            self._life.traffic.connection_closed(self._connection, self._broker.driver.clock.now())
        self.closed = True
        self._waiting.clear()
        self._waiting_bytes = 0
        self._held.clear()


def _named(header: RequestHeader) -> str:
    name = NAMES.get(header.api_key, f"API {header.api_key}")
    return f"{name} v{header.api_version} of client {header.client_id!r}"
