"""From nodes of ZooKeeper to rows, whether they come from a file or from ZooKeeper itself.

A broker is alive while its ephemeral node below /brokers/ids exists. /brokers/topics/T has the replicas,
…/partitions/P/state leader and ISR. Consumers of 0.8 have no coordinator: /consumers/G/ids has the members,
owners the partitions of each, offsets the committed offsets. Their groups are of kind "zookeeper". What is
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
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations.cluster import BrokerView, PartitionView
from kelpie.observations.collection import Observations
from kelpie.observations.groups import ZOOKEEPER, GroupState, Member
from kelpie.observations.mapping_tree import StoredValue, mapping_rows
from kelpie.observations.positions import Committed

_OWNER_THREAD = re.compile(r"-\d+$")


@dataclass(frozen=True, slots=True)
class ZooKeeperNode:
    """What is known of a node. `data` is None if it has none, or was not read."""

    data: str | None = None
    modified: Instant | None = None
    created: Instant | None = None
    session: int | None = None
    """Whose end deletes it; 0: it is not ephemeral. None: unknown."""


def observe_nodes(nodes: Mapping[str, ZooKeeperNode], source: str, at: Instant | None) -> Observations:
    """The rows of all nodes, by path, as they were at this time."""
    observations = Observations()
    tree = _Tree(nodes)
    observations.partitions = list(_partitions(tree, at, source))
    observations.brokers = list(_brokers(tree, observations.partitions, at, source))
    for group in tree.children("/consumers"):
        observations.known_groups[group] = source
        observations.committed += _offsets(tree, group, at, source)
        state = _state(tree, group, at, source)
        if state is not None:
            observations.states.append(state)
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

    def data(self, path: str) -> str | None:
        node = self._nodes.get(path)
        return node.data if node is not None else None

    def json(self, path: str) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            document = json.loads(self.data(path) or "{}")
            if isinstance(document, dict):
                return document
        return {}


def _brokers(
    tree: _Tree, partitions: Iterable[PartitionView], at: Instant | None, source: str
) -> Iterator[BrokerView]:
    if not tree.has("/brokers/ids"):
        return
    living = {int(node) for node in tree.children("/brokers/ids") if node.isdecimal()}
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


def _partitions(tree: _Tree, at: Instant | None, source: str) -> Iterator[PartitionView]:
    for topic in tree.children("/brokers/topics"):
        assigned = tree.json(f"/brokers/topics/{topic}").get("partitions")
        replicas = {
            int(partition): _nodes(nodes)
            for partition, nodes in (assigned.items() if isinstance(assigned, dict) else ())
            if partition.isdecimal()
        }
        known = [child for child in tree.children(f"/brokers/topics/{topic}/partitions") if child.isdecimal()]
        for partition in sorted(replicas.keys() | set(map(int, known))):
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


def _offsets(tree: _Tree, group: str, at: Instant | None, source: str) -> Iterator[Committed]:
    for topic in tree.children(f"/consumers/{group}/offsets"):
        for partition in tree.children(f"/consumers/{group}/offsets/{topic}"):
            data = (tree.data(f"/consumers/{group}/offsets/{topic}/{partition}") or "").strip()
            if partition.isdecimal() and re.fullmatch(r"-?\d{1,18}", data):
                yield Committed(group, topic, int(partition), int(data), at=at, source=source)


def _state(tree: _Tree, group: str, at: Instant | None, source: str) -> GroupState | None:
    """Members, and what each owns. None: they were not read."""
    base = f"/consumers/{group}"
    if not tree.has(f"{base}/ids"):
        return None
    owned: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for topic in tree.children(f"{base}/owners"):
        for partition in tree.children(f"{base}/owners/{topic}"):
            owner = tree.data(f"{base}/owners/{topic}/{partition}")
            if owner and partition.isdecimal():
                owned[_OWNER_THREAD.sub("", owner.strip())].append(TopicPartition(topic, int(partition)))
    members = []
    for member in tree.children(f"{base}/ids"):
        subscription = tree.json(f"{base}/ids/{member}").get("subscription")
        topics = tuple(sorted(subscription)) if isinstance(subscription, dict) else None
        assigned = tuple(sorted(owned[member])) if tree.has(f"{base}/owners") else None
        members.append(Member(member, member, subscribed=topics, assigned=assigned))
    word = "Stable" if members else "Empty"
    return GroupState(group, word, ZOOKEEPER, "consumer", members=tuple(members), at=at, source=source)
