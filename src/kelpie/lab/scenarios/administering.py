"""What people do to a cluster with Kafka's tools: the admin client, for one group or partition."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from kelpie.client import Admin
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.observations import LogEnds
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

GROUP, TRANSACTION = 0, 1
_TOPIC = 2
"""The type of the resource."""
_TOOL = "admin"
_PATIENCE_S = 15.0


@asynccontextmanager
async def admin(stage: Stage, cluster: Cluster) -> AsyncIterator[Admin]:
    """An admin client. It waits until there are coordinators and leaders."""
    async with await stage.nodes(cluster, _TOOL) as nodes:
        yield Admin(nodes, patience_s=_PATIENCE_S)


async def commit(stage: Stage, cluster: Cluster, group: str, partition: TopicPartition, at: int) -> ErrorCode:
    """As kafka-consumer-groups --reset-offsets does it: no member, no generation, no leader epoch."""
    async with admin(stage, cluster) as client:
        rows = await client.commit(group, {partition: at})
    return ErrorCode(rows[0].error)


async def committed(stage: Stage, cluster: Cluster, group: str, partition: TopicPartition) -> int:
    """The committed offset; −1: none."""
    async with admin(stage, cluster) as client:
        rows = await client.committed([group], [partition], require_stable=False)
    return rows[0].offset if rows.rows else -1


async def log_ends(stage: Stage, cluster: Cluster, partition: TopicPartition) -> LogEnds:
    async with admin(stage, cluster) as client:
        return (await client.log_ends([partition]))[0]


async def alter_topic(stage: Stage, cluster: Cluster, topic: str, settings: Mapping[str, str]) -> None:
    """As kafka-configs --alter --add-config does it."""
    changes = [ConfigChange(name=name, config_operation=0, value=value) for name, value in settings.items()]
    resource = IncrementalAlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    async with await stage.nodes(cluster, _TOOL) as nodes:
        answer = await nodes.ask_any(request)
    assert not any(response.error_code for response in answer.responses)


async def coordinator(stage: Stage, nodes: Nodes, key: str, kind: int = GROUP) -> int:
    """The node id of a coordinator, as producers ask for it. It may take a moment until there is one."""
    request = FindCoordinatorRequest(key=key, key_type=kind)
    response = await stage.until(lambda: nodes.ask_any(request, 2), lambda answer: answer.error_code == 0)
    if response.error_code:
        raise ConnectionError(f"{key} has no coordinator")
    node_id: int = response.node_id
    return node_id
