"""From nodes of ZooKeeper to rows, whether they come from a file or from ZooKeeper itself.

A broker is alive while its ephemeral node below /brokers/ids exists. /brokers/topics/T has the replicas,
…/partitions/P/state leader and ISR. Consumers of 0.8 have no coordinator: /consumers/G/ids has the members,
owners the partitions of each, offsets the committed offsets (zookeeper_groups.py). What is
below /client_group_id is KoP's mapping of clients to groups (mapping_tree.py).
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant
from kelpie.observations.cluster import BrokerView, PartitionView
from kelpie.observations.collection import Observations
from kelpie.observations.mapping_tree import StoredValue, mapping_rows
from kelpie.observations.zookeeper_groups import (
    OwnerNode,
    Registration,
    StoredOffset,
    TopicStreams,
    ZooKeeperGroup,
)
from kelpie.zookeeper.config import PatternKind

_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class ZooKeeperNode:
    """What is known of a node. `data` is None if it has none, or was not read."""

    data: str | None = None
    modified: Instant | None = None
    created: Instant | None = None
    session: int | None = None
    """Whose end deletes it; 0: it is not ephemeral. None: unknown."""


def observe_nodes(
    nodes: Mapping[str, ZooKeeperNode], source: str, at: Instant | None, *, complete: bool = False
) -> Observations:
    """The rows of all nodes, by path, as they were at this time.

    `complete`: nothing is missing, so that a node that is not among them did not exist.
    """
    observations = Observations()
    tree = _Tree(nodes)
    observations.partitions = list(_partitions(tree, at, source))
    observations.brokers = list(_brokers(tree, observations.partitions, at, source))
    observations.zookeeper_groups = [
        _group(tree, group, at, source, complete=complete) for group in tree.children("/consumers")
    ]
    if _has_all_mappings(nodes):
        values = {path: StoredValue((node.data or "").encode()) for path, node in nodes.items()}
        observations.add(mapping_rows(values, source, at, file=source))
    return observations


def _has_all_mappings(nodes: Mapping[str, ZooKeeperNode]) -> bool:
    """Whether KoP's tree was listed and all its nodes were read: what a listing leaves out does not exist."""
    below = [path for path in nodes if path.startswith(f"{KOP_ROOT}/")]
    return KOP_ROOT in nodes and all(nodes[path].data is not None for path in below)


class _Tree:
    def __init__(self, nodes: Mapping[str, ZooKeeperNode]) -> None:
        self._nodes = nodes
        self._children: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for path in sorted(nodes):
            child = path
            while child and child != "/":
                parent, _, name = child.rpartition("/")
                if name in self._children[parent]:
                    break
                self._children[parent][name] = None
                child = parent

    def has(self, path: str) -> bool:
        return path in self._nodes or path in self._children

    def children(self, path: str) -> Sequence[str]:
        return tuple(self._children.get(path, ()))

    def node(self, path: str) -> ZooKeeperNode:
        return self._nodes.get(path, ZooKeeperNode())

    def json(self, path: str) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            document = json.loads(self.node(path).data or "{}")
            if isinstance(document, dict):
                return document
        return {}


def _brokers(
    tree: _Tree, partitions: Iterable[PartitionView], at: Instant | None, source: str
) -> Iterator[BrokerView]:
    if not tree.has("/brokers/ids"):
        return
    living = _numbers(tree.children("/brokers/ids"))
    for node in sorted(living):
        host, port = _address(tree.json(f"/brokers/ids/{node}"))
        rack = tree.json(f"/brokers/ids/{node}").get("rack")
        yield BrokerView(
            node, host, port, rack if isinstance(rack, str) else None, True, at=at, source=source
        )
    for node in sorted({node for view in partitions for node in view.replicas} - living):
        reason = "it has no node below /brokers/ids in ZooKeeper"
        yield BrokerView(node, alive=False, reason=reason, at=at, source=source)


def _address(registration: Mapping[str, Any]) -> tuple[str, int]:
    """Host and port. They are empty where there is TLS only; since 0.9 there are endpoints, too."""
    host, port = registration.get("host"), registration.get("port")
    if isinstance(host, str) and host and isinstance(port, int) and port > 0:
        return host, port
    for endpoint in registration.get("endpoints") or ():
        match = re.fullmatch(r"\w+://(.*):(\d{1,5})", str(endpoint))
        if match is not None:
            return match[1], int(match[2])
    return "", -1


def _numbers(names: Iterable[str]) -> set[int]:
    return {number for name in names if (number := whole_number(name)) is not None}


def _partitions(tree: _Tree, at: Instant | None, source: str) -> Iterator[PartitionView]:
    for topic in tree.children("/brokers/topics"):
        assigned = tree.json(f"/brokers/topics/{topic}").get("partitions")
        replicas = {
            number: _nodes(nodes)
            for partition, nodes in (assigned.items() if isinstance(assigned, dict) else ())
            if (number := whole_number(partition)) is not None
        }
        known = _numbers(tree.children(f"/brokers/topics/{topic}/partitions"))
        for partition in sorted(replicas.keys() | known):
            state = tree.json(f"/brokers/topics/{topic}/partitions/{partition}/state")
            leader, epoch = state.get("leader", -1), state.get("leader_epoch", -1)
            if not state and tree.has(f"/brokers/topics/{topic}/partitions/{partition}/state"):
                continue  # It exists, and its data was not read.
            in_sync = _nodes(state.get("isr"))
            yield PartitionView(
                topic,
                partition,
                leader if isinstance(leader, int) else -1,
                replicas.get(partition, in_sync),
                in_sync,
                leader_epoch=epoch if isinstance(epoch, int) else -1,
                at=at,
                source=source,
            )


def _nodes(value: object) -> tuple[int, ...]:
    return tuple(node for node in value if isinstance(node, int)) if isinstance(value, list) else ()


def _group(tree: _Tree, group: str, at: Instant | None, source: str, *, complete: bool) -> ZooKeeperGroup:
    base = f"/consumers/{group}"
    return ZooKeeperGroup(
        group,
        tuple(_registrations(tree, base)) if complete or tree.has(f"{base}/ids") else None,
        tuple(_owners(tree, base)) if complete or tree.has(f"{base}/owners") else None,
        tuple(_offsets(tree, base)),
        at,
        source,
    )


def _registrations(tree: _Tree, base: str) -> Iterator[Registration]:
    for member in tree.children(f"{base}/ids"):
        path = f"{base}/ids/{member}"
        node, content = tree.node(path), tree.json(path)
        subscribed = content.get("subscription")
        subscription = (
            tuple(
                TopicStreams(topic, streams)
                for topic, streams in sorted(subscribed.items())
                if isinstance(streams, int)
            )
            if isinstance(subscribed, dict)
            else None
        )
        pattern = str(content.get("pattern", PatternKind.STATIC.value))
        yield Registration(member, subscription, pattern, node.session, node.created)


def _owners(tree: _Tree, base: str) -> Iterator[OwnerNode]:
    for topic, partition, path in _partition_nodes(tree, f"{base}/owners"):
        node = tree.node(path)
        if node.data:
            yield OwnerNode(topic, partition, node.data.strip(), node.session, node.created)


def _offsets(tree: _Tree, base: str) -> Iterator[StoredOffset]:
    for topic, partition, path in _partition_nodes(tree, f"{base}/offsets"):
        node = tree.node(path)
        data = (node.data or "").strip()
        if re.fullmatch(r"-?\d{1,18}", data):
            yield StoredOffset(topic, partition, int(data), node.modified)


def _partition_nodes(tree: _Tree, base: str) -> Iterator[tuple[str, int, str]]:
    """Topic, partition and path of nodes TOPIC/PARTITION, in order."""
    for topic in tree.children(base):
        numbers = sorted(int(name) for name in tree.children(f"{base}/{topic}") if _NUMBER.fullmatch(name))
        for number in numbers:
            yield topic, number, f"{base}/{topic}/{number}"
