"""A cluster as plain data, for people and for the control API."""

from kelpie.broker.broker import BrokerSet
from kelpie.broker.image import OFFSETS_TOPIC, Image
from kelpie.broker.personas import Persona
from kelpie.model.names import TopicPartition


def describe(image: Image, persona: Persona, brokers: BrokerSet) -> dict[str, object]:
    return {
        "cluster_id": image.cluster_id,
        "persona": persona.name,
        "controller": image.controller_id,
        "brokers": [
            {
                "id": node_id,
                "address": f"{image.brokers[node_id].host}:{image.brokers[node_id].port}",
                "alive": node_id in brokers.alive,
                "registered": node_id in image.alive,
                "isolated": node_id in brokers.isolated,
                "frozen": node_id in brokers.frozen,
            }
            for node_id in sorted(brokers.by_id)
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
        "groups": _groups(image, brokers),
    }


def _groups(image: Image, brokers: BrokerSet) -> list[dict[str, object]]:
    """Groups on the true leaders only: a broker with an old image may still believe that it leads."""
    groups: list[dict[str, object]] = []
    for broker in brokers.living():
        for index, host in sorted(broker.groups.hosts.items()):
            state = image.partition(TopicPartition(OFFSETS_TOPIC, index))
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
