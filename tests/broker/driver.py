"""A cluster under a clock that only tests move: requests in, answers out, nothing waits by itself.

Every request and every answer goes through the codec in its version, so what a test sees is what a client
would see. A call is answered once; a second answer fails the test.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

from kelpie.broker.call import Call, ClientConnection
from kelpie.broker.fabric import ClusterSpec, Fabric
from kelpie.broker.image import Endpoint, PartitionImage
from kelpie.broker.replica import Replica
from kelpie.model.names import TopicPartition
from kelpie.wire.framing import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kelpie.wire.schema import declaration_of

START = 1_700_000_000_000
PERSONAS = ("0.9", "2.8", "3.9", "4.3")
SMALL = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}


class _Parked:
    def __repr__(self) -> str:
        return "PARKED"


PARKED = _Parked()
"""No answer yet."""


@dataclass(eq=False)
class Sent:
    """A request on its way. `answers` stays empty while it waits."""

    name: str
    answers: list[Any] = field(default_factory=list)
    refused: bool = False

    @property
    def waits(self) -> bool:
        return not self.answers and not self.refused

    @property
    def answer(self) -> Any:
        assert self.answers, f"{self.name} waits"
        return self.answers[0]


class Cluster:
    """Brokers 1 to N; ids are counted, so that every run is the same."""

    def __init__(
        self,
        brokers: int = 3,
        persona: str = "4.3",
        settings: dict[str, str] | None = None,
        *,
        racks: tuple[str, ...] = (),
        listeners: dict[int, frozenset[str]] | None = None,
    ) -> None:
        self.now = START
        self._ids = itertools.count(1)
        self._correlation = itertools.count()
        endpoints = tuple(
            Endpoint(
                node,
                f"host{node}",
                9090 + node,
                racks[node - 1] if racks else None,
                (listeners or {}).get(node, frozenset({"PLAINTEXT"})),
            )
            for node in range(1, brokers + 1)
        )
        spec = ClusterSpec(endpoints, persona, {**SMALL, **(settings or {})}, "cluster")
        self.fabric = Fabric(spec, now=self.now, new_id=self._new_id)
        self.persona = self.fabric.persona

    def _new_id(self) -> str:
        return f"00000000-0000-0000-0000-{next(self._ids):012x}"

    # Requests

    def send(
        self,
        node: int,
        request: Any,
        version: int | None = None,
        *,
        client_id: str = "client",
        listener: str = "PLAINTEXT",
        connection: ClientConnection | None = None,
    ) -> Sent:
        key = declaration_of(type(request)).api_key
        assert key is not None
        if version is None:
            version = self.latest(key)
        header = RequestHeader(key, version, next(self._correlation), client_id)
        _, message = decode_request(encode_request(header, request)[4:])
        sent = Sent(f"{type(request).__name__} v{version}")

        def answer(response: Any) -> None:
            assert sent.waits, f"{sent.name} is answered twice"
            if response is not None:
                frame = encode_response(key, version, header.correlation_id, response)
                response = decode_response(key, version, frame[4:])[1]
            sent.answers.append(response)

        def refuse() -> None:
            sent.refused = True

        call = Call(header, message, "/127.0.0.1", answer, refuse, listener, connection)
        self.fabric.handle(node, call, self.now)
        return sent

    def ask(self, node: int, request: Any, version: int | None = None, **more: Any) -> Any:
        """The answer, or PARKED."""
        sent = self.send(node, request, version, **more)
        assert not sent.refused, f"{sent.name} was refused"
        return PARKED if sent.waits else sent.answer

    def latest(self, key: int) -> int:
        versions = self.persona.versions[key]
        return versions.first if versions.last is None else versions.last

    # Time

    def advance(self, ms: int = 0) -> None:
        """Runs every timer up to then, each at its own time."""
        end = self.now + ms
        while True:
            deadline = self.fabric.next_deadline()
            if deadline is None or deadline > end:
                break
            self.now = max(self.now, deadline)
            self.fabric.tick(self.now)
        self.now = end

    def lose(self, *nodes: int) -> None:
        """They are killed, one after the other, and the controller has noticed."""
        for node in nodes:
            self.fabric.kill(node, self.now)
            self.advance(500)

    def start(self, node: int) -> None:
        self.fabric.start(node, self.now)

    # Looking

    def create(
        self,
        topic: str = "orders",
        partitions: int = 1,
        replication: int = 3,
        config: dict[str, str] | None = None,
        assignment: dict[int, list[int]] | None = None,
    ) -> TopicPartition:
        """A topic, whose first partition is led by the first broker of the assignment (1, 2, 3)."""
        if assignment is None and replication <= len(self.fabric.brokers):
            nodes = sorted(self.fabric.brokers)
            assignment = {
                index: [nodes[(index + copy) % len(nodes)] for copy in range(replication)]
                for index in range(partitions)
            }
        self.fabric.create_topic(
            topic, partitions, replication, self.now, config=config or {}, assignment=assignment
        )
        return TopicPartition(topic, 0)

    def state(self, partition: TopicPartition) -> PartitionImage:
        state = self.fabric.controller.image.partition(partition)
        assert state is not None
        return state

    def leader(self, partition: TopicPartition) -> int:
        return self.state(partition).leader

    def replica(self, node: int, partition: TopicPartition) -> Replica:
        return self.fabric.broker(node).replicas[partition]

    def topic_id(self, topic: str) -> bytes:
        return self.fabric.controller.image.topics[topic].topic_id
