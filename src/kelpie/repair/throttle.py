"""A limit on how fast replicas are copied, as kafka-reassign-partitions --throttle sets it (KIP-73).

Two settings of the topic name the replicas that are limited, and two of each broker the rate. Kafka takes
none of them back by itself: replication would stay slow for ever.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelpie.client.admin.controller import controller_of
from kelpie.client.nodes import Nodes
from kelpie.errors import describe
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.applying import StepFailed
from kelpie.repair.change_records import ChangeRecord, ReplicasChange
from kelpie.repair.replica_placement import ReplicaMove
from kelpie.wire.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kelpie.wire.api.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

_TOPIC, _BROKER = 2, 4
_SET, _DELETE = 0, 1
_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LEADERS, _FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True)
class Throttle:
    """The limit of one reassignment."""

    bytes_per_s: int
    brokers: tuple[int, ...]
    """Those that send or receive."""
    leaders: str
    followers: str
    """As Kafka writes them: "3:1,3:2", partition and broker."""

    @classmethod
    def of(cls, rate: int, moves: Iterable[ReplicaMove]) -> "Throttle":
        """Old replicas send, new ones receive."""
        copying = [move for move in moves if move.added]
        sending = [(move.partition, node) for move in copying for node in move.before]
        receiving = [(move.partition, node) for move in copying for node in move.added]
        brokers = tuple(sorted({node for _, node in (*sending, *receiving)}))
        return cls(rate, brokers, _written(sending), _written(receiving))

    async def set(self, nodes: Nodes) -> str:
        """Raises StepFailed, ClientError."""
        rate = str(self.bytes_per_s)
        for node in self.brokers:
            if node in nodes.brokers:
                await _change(nodes, node, _BROKER, str(node), dict.fromkeys(_RATES, rate))
        limited = {_LEADERS: self.leaders, _FOLLOWERS: self.followers}
        await _change(nodes, await controller_of(nodes), _TOPIC, OFFSETS_TOPIC, limited)
        return f"Copying is limited to {self.bytes_per_s:,} bytes/s on each broker."

    async def take_back(self, nodes: Nodes) -> str:
        """Raises StepFailed, ClientError."""
        nothing: Mapping[str, str | None] = {_LEADERS: None, _FOLLOWERS: None}
        await _change(nodes, await controller_of(nodes), _TOPIC, OFFSETS_TOPIC, nothing)
        for node in self.brokers:
            if node in nodes.brokers:
                await _change(nodes, node, _BROKER, str(node), dict.fromkeys(_RATES))
        return "The limit on copying is taken back."


async def left_over(nodes: Nodes, known: Iterable[ChangeRecord]) -> Throttle | None:
    """A limit that an earlier run has set and could not take back: the replicas were still copied."""
    for record in reversed(list(known)):
        change = record.change
        if (
            record.cluster == (nodes.cluster_id or "")
            and isinstance(change, ReplicasChange)
            and change.throttle
        ):
            moves = [ReplicaMove(number, was, change.after[number]) for number, was in change.before.items()]
            throttle = Throttle.of(change.throttle, moves)
            return throttle if await _limited(nodes) == throttle.followers else None
    return None


async def _limited(nodes: Nodes) -> str:
    """The replicas of the offsets topic that are limited now, as Kafka writes them."""
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=OFFSETS_TOPIC, configuration_keys=[_FOLLOWERS]
    )
    response = await nodes.ask_any(DescribeConfigsRequest(resources=[resource]))
    return next((row.value or "" for each in response.results for row in each.configs), "")


def _written(replicas: Sequence[tuple[int, int]]) -> str:
    return ",".join(f"{partition}:{node}" for partition, node in sorted(set(replicas)))


async def _change(nodes: Nodes, node: int, kind: int, name: str, settings: Mapping[str, str | None]) -> None:
    changes = [
        ConfigChange(name=setting, config_operation=_DELETE if value is None else _SET, value=value)
        for setting, value in settings.items()
    ]
    resource = IncrementalAlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    for row in (await nodes.ask(node, request)).responses:
        if row.error_code:
            raise StepFailed(
                f"The settings of {'broker' if kind == _BROKER else 'topic'} {name} cannot be changed: "
                f"{describe(row.error_code)}. {row.error_message or ''}".rstrip()
            )
