"""A group of Kafka 0.8's kind, as ZooKeeper keeps it: who is registered, and how far it has read."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from kelpie.client.survey import wall_clock
from kelpie.client.zookeeper import ZooKeeperError, connected
from kelpie.client.zookeeper_nodes import TreeNode, TreeReader
from kelpie.model.names import TopicPartition
from kelpie.observations.zookeeper_tree import observe_nodes
from kelpie.repair.plan import CannotRepair

LIMIT_S = 10.0
_BROKERS = "/brokers/ids"
_NO_NAMES = ("", ".", "..")


@dataclass(frozen=True, slots=True)
class SourceGroup:
    """The group from which offsets are moved."""

    offsets: Mapping[TopicPartition, int]
    unreadable: tuple[str, ...]
    """Nodes below its offsets that hold none."""
    members: tuple[str, ...]
    brokers: frozenset[int]
    """Those that are registered in the same ZooKeeper."""


async def read_group(hosts: str, group: str, limit_s: float = LIMIT_S) -> SourceGroup:
    """`hosts` as zookeeper.connect has them. Reads only. Raises CannotRepair."""
    if group in _NO_NAMES or "/" in group or not group.isprintable():
        raise CannotRepair(f"{group!r} is no name of a group in ZooKeeper, where it would be that of a node.")
    root = f"/consumers/{group}"

    def read() -> dict[str, TreeNode]:
        with connected(hosts, limit_s, read_only=True, of_kafka=False) as client:
            return TreeReader(client, hosts, limit_s).trees([root, _BROKERS])

    try:
        nodes = await asyncio.to_thread(read)
    except ZooKeeperError as error:
        raise CannotRepair(str(error)) from None
    if root not in nodes:
        raise CannotRepair(
            f"ZooKeeper at {hosts} has no group {group}: there is no node {root}. Does zookeeper.connect of "
            "its consumers end in a path (zk-1:2181/kafka)?"
        )
    return _group(root, nodes, f"ZooKeeper at {hosts}")


def _group(root: str, nodes: Mapping[str, TreeNode], source: str) -> SourceGroup:
    as_text = {path: node.as_text() for path, node in nodes.items()}
    rows = observe_nodes(as_text, source, wall_clock(), complete=True)
    (group,) = rows.zookeeper_groups
    offsets = {stored.name: stored.offset for stored in group.offsets if stored.offset >= 0}
    below = f"{root}/offsets/"
    of_partitions = {path for path in nodes if path.startswith(below) and path[len(below) :].count("/") == 1}
    return SourceGroup(
        offsets,
        tuple(sorted(of_partitions - {f"{below}{name.topic}/{name.partition}" for name in offsets})),
        group.members,
        frozenset(broker.node_id for broker in rows.brokers if broker.alive),
    )
