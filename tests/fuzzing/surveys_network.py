"""A network inside the process whose brokers lie: about anything, at any step, or not at all.

A `Liar` decides for each answer what becomes of it. What it decides follows from its `Random` and from the
order of the requests alone, so a seed always tells the same lies.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kelpie.client.security import MECHANISMS
from kelpie.wire.api.api_versions import ApiVersion, ApiVersionsResponse
from kelpie.wire.api.metadata import MetadataResponseBroker
from kelpie.wire.api.sasl_authenticate import SaslAuthenticateResponse
from kelpie.wire.api.sasl_handshake import SaslHandshakeResponse
from kelpie.wire.apis import NAMES, api
from kelpie.wire.framing import API_VERSIONS, Frames, decode_response, encode_response
from kelpie.wire.malformed import Malformed
from tests.fuzzing.mutation import mutated
from tests.fuzzing.surveys_lies import challenge_of, invented, tell_lies, with_surrogates
from tests.fuzzing.surveys_truth import NODES, STATES, releases, true_answer

_METADATA = 3
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_OTHER_APIS = (69, 77, 89, 90, 55, 65, 66, 75)
"""Those that describe groups which the lab does not have, and others that some releases lack."""
_LATENCY_S = 0.001
_FIRST_INVENTED_PORT = 20_000
_GREETINGS = (
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\x15\x03\x03\x00\x02\x02\x28",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x00\x00\x00\x02ab",
    b"\x0f\xff\xff\xff" + bytes(100),
)
"""First words of other protocols, and frames whose length cannot be."""
_ANSWERS = ("fields", "bytes", "invented", "cut off")
_STREAMS = (
    "silence",
    "hang up",
    "half",
    "correlation",
    "twice",
    "other",
    "length",
    "garbage",
    "slow",
    "pieces",
)


@dataclass(slots=True)
class Liar:
    """What one run's brokers are like."""

    chance: Random
    release: str
    state: str
    how_often: float
    """Which share of the answers is a lie."""
    kinds: tuple[str, ...]
    """What kinds of lies are told."""
    all_apis: bool
    """Whether APIs are offered that the lab does not serve: their answers are made up."""
    new_nodes: bool
    """Whether each answer names a broker more."""
    refuses: float
    """Which share of the connections is refused, or hangs."""
    mechanism: str = ""
    """Of SASL; "" for a listener without."""
    requests: int = 0
    lies: int = 0
    most_dials: int = 0
    """So many connections were being made at a time."""
    _dials: int = 0
    _ports: int = field(default=_FIRST_INVENTED_PORT)

    @classmethod
    def drawn(cls, chance: Random) -> "Liar":
        kinds = _ANSWERS if chance.random() < 0.4 else (*_ANSWERS, *_STREAMS)
        few = chance.sample(kinds, chance.randint(1, 3))
        return cls(
            chance,
            chance.choices(releases(), (1, 2, 2, 5))[0],
            chance.choices(STATES, (6, 3, 1))[0],
            chance.choice((0.02, 0.05, 0.1, 0.3, 1.0)),
            tuple(few) if chance.random() < 0.5 else kinds,
            chance.random() < 0.4,
            chance.random() < 0.05,
            chance.choice((0.0, 0.0, 0.0, 0.1, 0.5)),
            chance.choice(MECHANISMS) if chance.random() < 0.1 else "",
        )

    def lie(self) -> str:
        """What becomes of the next answer: "" if it is the truth."""
        self.requests += 1
        if self.chance.random() >= self.how_often:
            return ""
        self.lies += 1
        return self.chance.choice(self.kinds)

    def answer(self, node: int, key: int, version: int, body: bytes, kind: str) -> bytes | None:
        """The frame behind its correlation id; None if there is none."""
        truth = self._honest(node, key, version, body)
        if kind == "invented" or (truth is None and self.all_apis and key in NAMES):
            if version not in api(key).versions:
                return None
            message = invented(api(key).response, version, self.chance)
            truth = _encoded(key, version, message)
        if truth is None:
            return None
        if kind == "bytes":
            return mutated(truth, self.chance)
        if kind == "cut off":
            return truth[: self.chance.randrange(len(truth) + 1)]
        return self._changed(key, version, truth, lies=kind == "fields")

    def _honest(self, node: int, key: int, version: int, body: bytes) -> bytes | None:
        if key == _SASL_HANDSHAKE and self.mechanism:
            return _encoded(key, version, SaslHandshakeResponse(error_code=0, mechanisms=[self.mechanism]))
        if key == _SASL_AUTHENTICATE and self.mechanism:
            challenge = challenge_of(self.mechanism, body, self.chance)
            accepted = SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=challenge)
            return _encoded(key, version, accepted)
        return true_answer((self.release, self.state), node, (key, version), body)

    def _changed(self, key: int, version: int, truth: bytes, *, lies: bool) -> bytes:
        offers = (self.all_apis or self.mechanism) and key == API_VERSIONS
        names = self.new_nodes and key == _METADATA
        if not (lies or offers or names):
            return truth
        try:
            message = decode_response(key, version, bytes(4) + truth)[1]
        except Malformed:
            return truth  # An answer in another version: ApiVersions has such.
        if offers:
            _offer(message, _OTHER_APIS if self.all_apis else ())
            _offer(message, (_SASL_HANDSHAKE, _SASL_AUTHENTICATE) if self.mechanism else ())
        if names:
            self._ports += 1
            message.brokers.append(
                MetadataResponseBroker(node_id=self._ports, host="host1", port=self._ports, rack=None)
            )
        if lies:
            tell_lies(message, version, self.chance)
        return _encoded(key, version, message)

    async def connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        """Part of a client's `InProcessNetwork`."""
        self._dials += 1
        self.most_dials = max(self.most_dials, self._dials)
        try:
            await self._connect(host, port, protocol)
        finally:
            self._dials -= 1

    async def _connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        await asyncio.sleep(_LATENCY_S)
        if self.chance.random() < self.refuses:
            if self.chance.random() < 0.3:
                await asyncio.sleep(1000)
            raise ConnectionRefusedError(f"nothing listens on {host}:{port}")
        node = _node_at(host, port, self.chance)
        if node is None or (self.state == "one broker dead" and node == NODES[-1]):
            raise ConnectionRefusedError(f"nothing listens on {host}:{port}")
        protocol.connection_made(_Broker(self, node, protocol))


def _node_at(host: str, port: int, chance: Random) -> int | None:
    for node in NODES:
        if (host, port) == (f"host{node}", 9090 + node):
            return node
    if host in ("host1", "host2", "host3"):
        return chance.choice(NODES)  # An address that a lie has named.
    return None


def _offer(message: ApiVersionsResponse, keys: Iterable[int]) -> None:
    offered = {entry.api_key for entry in message.api_keys}
    for key in keys:
        if key not in offered:
            versions = api(key).versions
            message.api_keys.append(
                ApiVersion(
                    api_key=key, min_version=versions.first, max_version=versions.last or versions.first
                )
            )


def _encoded(key: int, version: int, message: Any) -> bytes:
    return with_surrogates(encode_response(key, version, 0, message)[8:])


class _Broker(asyncio.Transport):
    """A broker's end of one connection, seen from the client: what it writes is asked, and answered later."""

    def __init__(self, liar: Liar, node: int, client: asyncio.Protocol) -> None:
        super().__init__({"peername": (f"host{node}", 9090 + node)})
        self._liar = liar
        self._node = node
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._closing = False
        self._says_next = 0.0

    def write(self, data: Any) -> None:
        if not self._closing:
            for frame in self._frames.feed(bytes(data)):
                self._asked(frame)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._client.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def _asked(self, frame: bytes) -> None:
        key, version = int.from_bytes(frame[:2], signed=True), int.from_bytes(frame[2:4], signed=True)
        correlation = frame[4:8]
        kind = self._liar.lie()
        chance = self._liar.chance
        if kind == "silence":
            return
        if kind == "hang up":
            self._say(None)
            return
        if kind == "garbage":
            self._say(chance.choice(_GREETINGS))
            return
        if kind == "other":
            other = chance.choice(tuple(NAMES))
            message = invented(api(other).response, api(other).versions.first, chance)
            self._say(_framed(correlation + _encoded(other, api(other).versions.first, message)))
            return
        answer = self._liar.answer(self._node, key, version, frame[8:], kind)
        if answer is None:
            if kind != "slow" and self._liar.release != "0.9":
                self._say(None)
            return
        self._send(_framed(correlation + answer), kind)

    def _send(self, frame: bytes, kind: str) -> None:
        chance = self._liar.chance
        match kind:
            case "half":
                self._say(frame[: chance.randrange(len(frame))])
                if chance.random() < 0.5:
                    self._say(None)
            case "correlation":
                wrong = chance.choice((bytes(4), b"\xff" * 4, chance.randbytes(4)))
                self._say(frame[:4] + wrong + frame[8:])
            case "twice":
                self._say(frame)
                self._say(frame)
            case "length":
                lied = chance.choice((-1, 0, 3, 4, len(frame) - 5, len(frame), 2**28, 2**28 + 1, 2**31 - 1))
                self._say(lied.to_bytes(4, signed=True) + frame[4:])
            case "slow":
                self._say(frame, chance.choice((0.5, 1.0, 4.9, 5.1, 60.0)))
            case "pieces":
                cut = chance.randrange(1, len(frame))
                self._say(frame[:cut])
                self._say(frame[cut:], 0.2)
            case _:
                self._say(frame)

    def _say(self, data: bytes | None, after_s: float = 0.0) -> None:
        """In order, as on a wire. None: the connection ends."""
        self._says_next = max(self._says_next, self._loop.time() + _LATENCY_S + after_s) + 1e-6
        self._loop.call_at(self._says_next, self._said, data)

    def _said(self, data: bytes | None) -> None:
        if self._closing:
            return
        if data is None:
            self.close()
        else:
            self._client.data_received(data)


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload
