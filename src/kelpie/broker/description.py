"""A cluster as plain data, for people and for the control API."""

from typing import TYPE_CHECKING

from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.model.names import TopicPartition

if TYPE_CHECKING:
    from kelpie.broker.fabric import Fabric


def describe(fabric: "Fabric") -> dict[str, object]:
    image = fabric.controller.image
    return {
        "cluster_id": image.cluster_id,
        "persona": fabric.persona.name,
        "controller": image.controller_id,
        "brokers": [
            {
                "id": node_id,
                "address": f"{image.brokers[node_id].host}:{image.brokers[node_id].port}",
                "alive": fabric.is_alive(node_id),
                "registered": node_id in image.alive,
                "isolated": fabric.is_isolated(node_id),
                "frozen": fabric.is_frozen(node_id),
            }
            for node_id in sorted(fabric.brokers)
        ],
        "topics": {
            topic.name: [
                {
                    "partition": index,
                    "leader": state.leader,
                    "epoch": state.leader_epoch,
                    "replicas": list(state.replicas),
                    "isr": list(state.isr),
                }
                for index, state in enumerate(topic.partitions)
            ]
            for topic in image.topics.values()
        },
        "groups": _groups(fabric),
    }


def _groups(fabric: "Fabric") -> list[dict[str, object]]:
    """Those of the brokers that truly lead; others may still believe that they do."""
    groups: list[dict[str, object]] = []
    for broker in fabric.alive_brokers():
        for index, host in sorted(broker.groups.hosts.items()):
            state = fabric.controller.image.partition(TopicPartition(OFFSETS_TOPIC, index))
            if not host.active or state is None or state.leader != broker.node_id:
                continue
            groups += [
                {
                    "group": listed.group_id,
                    "state": listed.group_state,
                    "coordinator": broker.node_id,
                    "partition": index,
                }
                for listed in host.shard.listed()
            ]
    return groups
