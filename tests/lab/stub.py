"""A fabric of cardboard: enough answers for the tests of what surrounds the real one."""

from collections.abc import Callable
from typing import Any

from kelpie.broker.call import Call
from kelpie.broker.declined import Declined
from kelpie.broker.image import Endpoint, Image, PartitionImage, TopicImage
from kelpie.broker.personas import persona
from kelpie.errors import ErrorCode
from kelpie.lab import Cluster, SyncCluster
from kelpie.model.time import Instant
from kelpie.wire.api.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kelpie.wire.api.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kelpie.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse
from kelpie.wire.api.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from kelpie.wire.api.produce import ProduceRequest


class StubFabric:
    """Answers at once, except heartbeats of the group "slow": they wait for `release` or their deadline."""

    def __init__(self, endpoints: dict[int, Endpoint], name: str) -> None:
        self.persona = persona(name)
        self.endpoints = endpoints
        self.alive = set(endpoints)
        self.topics: dict[str, int] = {"orders": 2, "odd/näme x": 1}
        self.handled: list[tuple[int, Any]] = []
        self.done: list[tuple[Any, ...]] = []
        self.parked: list[tuple[Instant, Call]] = []
        self.park_ms = 60_000
        self.inside = False
        self.ticks = 0

    def handle(self, node_id: int, call: Call, now: Instant) -> None:
        assert not self.inside, "the fabric was entered twice"
        assert node_id in self.alive
        self.inside = True
        try:
            self.handled.append((node_id, call.message))
            self._handle(call, now)
        finally:
            self.inside = False

    def _handle(self, call: Call, now: Instant) -> None:
        match call.message:
            case ApiVersionsRequest():
                keys = [
                    ApiVersion(api_key=key, min_version=spoken.first, max_version=spoken.last or 0)
                    for key, spoken in self.persona.versions.items()
                ]
                call.answer(ApiVersionsResponse(error_code=0, api_keys=keys))
            case MetadataRequest():
                brokers = [
                    MetadataResponseBroker(node_id=own.node_id, host=own.host, port=own.port)
                    for own in self.endpoints.values()
                    if own.node_id in self.alive
                ]
                call.answer(MetadataResponse(brokers=brokers, topics=[]))
            case FindCoordinatorRequest(coordinator_keys=keys) if keys:
                found = [
                    Coordinator(key=key, node_id=1, host="h", port=1, error_code=0, error_message=None)
                    for key in keys
                ]
                call.answer(FindCoordinatorResponse(coordinators=found))
            case FindCoordinatorRequest():
                call.answer(FindCoordinatorResponse(error_code=15, node_id=-1, port=-1))
            case HeartbeatRequest(group_id="slow"):
                self.parked.append((now + self.park_ms, call))
            case HeartbeatRequest(group_id="wake"):
                self.release()
                call.answer(HeartbeatResponse(error_code=0))
            case HeartbeatRequest(group_id="broken"):
                raise RuntimeError("a defect of the broker")
            case HeartbeatRequest():
                call.answer(HeartbeatResponse(error_code=0))
            case ProduceRequest(acks=0):
                call.answer(None)
            case _:
                call.refuse()

    def release(self) -> None:
        parked, self.parked = self.parked, []
        for _, call in parked:
            call.answer(HeartbeatResponse(error_code=27))

    def tick(self, now: Instant) -> None:
        self.ticks += 1
        due = [entry for entry in self.parked if entry[0] <= now]
        self.parked = [entry for entry in self.parked if entry[0] > now]
        for _, call in due:
            call.answer(HeartbeatResponse(error_code=22))

    def next_deadline(self) -> Instant | None:
        return min((at for at, _ in self.parked), default=None)

    def is_alive(self, node_id: int) -> bool:
        return node_id in self.alive

    def kill(self, node_id: int, now: Instant) -> None:
        self.alive.discard(node_id)
        self.done.append(("kill", node_id))

    def stop(self, node_id: int, now: Instant) -> None:
        self.alive.discard(node_id)
        self.release()
        self.done.append(("stop", node_id))

    def start(self, node_id: int, now: Instant) -> None:
        self.alive.add(node_id)
        self.done.append(("start", node_id))

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int,
        now: Instant,
        *,
        config: dict[str, str],
        assignment: Any = None,
    ) -> None:
        if name in self.topics:
            raise Declined(ErrorCode.TOPIC_ALREADY_EXISTS, "it exists")
        self.topics[name] = partitions
        self.done.append(("create_topic", name, partitions, replication, config))

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in _NOTED:
            raise AttributeError(name)

        def note(*args: Any, **kwargs: Any) -> None:
            self.done.append((name, *(given for given in args if not _is_instant(given)), *kwargs.values()))

        return note

    def describe(self) -> dict[str, Any]:
        return {
            "brokers": [
                {"id": own.node_id, "address": f"{own.host}:{own.port}", "alive": own.node_id in self.alive}
                for own in self.endpoints.values()
            ],
            "topics": {
                name: [
                    {"partition": at, "leader": min(self.alive, default=-1), "replicas": [1], "isr": [1]}
                    for at in range(count)
                ]
                for name, count in self.topics.items()
            },
            "groups": [
                {"group": f"g{at}", "state": state, "coordinator": 1, "partition": 0}
                for at, state in enumerate(("Stable", "Empty", "Stable"))
            ],
        }

    @property
    def controller(self) -> "StubFabric":
        return self

    @property
    def image(self) -> Image:
        """What the lab looks up of a true image: topics, partitions, ids."""
        endpoints = self.endpoints
        partition = PartitionImage(replicas=tuple(endpoints), isr=tuple(endpoints), leader=min(endpoints))
        topics = {
            name: TopicImage(name, name.encode().ljust(16)[:16], (partition,) * count)
            for name, count in self.topics.items()
        }
        names = {topic.topic_id: name for name, topic in topics.items()}
        return Image(1, "stub", endpoints, frozenset(self.alive), topics, names, 1)


_NOTED = {
    "isolate",
    "rejoin",
    "freeze_metadata",
    "thaw_metadata",
    "lag",
    "catch_up",
    "shrink_isr",
    "make_leaderless",
    "elect",
    "slow_load",
    "lose_offsets",
    "expire_offsets",
}


def _is_instant(given: Any) -> bool:
    return isinstance(given, int) and given > 1_000_000_000_000


class StubCluster(Cluster):
    """The lab around a fabric of cardboard."""

    def _new_fabric(self, now: Instant) -> Any:
        return StubFabric(self.endpoints, self.persona.name)

    @property
    def stub(self) -> StubFabric:
        fabric: Any = self.fabric
        assert isinstance(fabric, StubFabric)
        return fabric


class SyncStubCluster(SyncCluster):
    _new_twin = staticmethod(StubCluster)

    @property
    def stub(self) -> StubFabric:
        assert isinstance(self.twin, StubCluster)
        return self.twin.stub
