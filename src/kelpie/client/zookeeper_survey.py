"""What ZooKeeper keeps, as rows. A survey never fails: what cannot be asked is a row, too.

Groups of Kafka 0.8's kind are read twice, some seconds apart: one look can catch a rebalance half way. Nodes
come in requests for 2,000 each, level by level, so a survey takes a handful of requests for hundreds of
groups.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.client.zookeeper import ZooKeeperError, connected
from kelpie.client.zookeeper_nodes import TreeNode, TreeReader
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked, ZooKeeperGroup
from kelpie.observations.mapping_tree import StoredValue, mapping_rows
from kelpie.observations.zookeeper_tree import observe_nodes
from kelpie.zookeeper.config import PatternKind

LIMIT_S = 10.0
INTERVAL_S = 3.0
_CONSUMERS, _BROKERS, _TOPICS = "/consumers", "/brokers/ids", "/brokers/topics"


@dataclass(frozen=True, slots=True)
class ZooKeeperPlace:
    """Where to ask, and how long."""

    hosts: str
    """As zookeeper.connect has them: HOST:PORT[,…][/PATH]."""
    mapping_root: str = KOP_ROOT
    """KoP's setting groupIdZooKeeperPath."""
    limit_s: float = LIMIT_S
    """For each look."""
    interval_s: float = INTERVAL_S
    """Between the two looks at groups that have members."""

    @property
    def source(self) -> str:
        return f"ZooKeeper at {self.hosts}"


def survey_zookeeper(place: ZooKeeperPlace, clock: Callable[[], Instant]) -> Observations:
    """Reads all trees that Kelpie knows. It blocks, for the limits of its place at most."""
    rows = Observations()
    try:
        with connected(place.hosts, place.limit_s, read_only=True, of_kafka=False) as client:
            reader = TreeReader(client, place.hosts, place.limit_s)
            rows.add(_mappings(reader, place, clock))
            rows.add(_groups(reader, place, clock))
    except ZooKeeperError as error:
        rows.unasked.append(Unasked("zookeeper", place.hosts, str(error), clock(), place.source))
    return rows


def _mappings(reader: TreeReader, place: ZooKeeperPlace, clock: Callable[[], Instant]) -> Observations:
    """A tree that is not there is a listing, too; but not where plain Kafka keeps its brokers."""
    nodes = reader.tree(place.mapping_root)
    if nodes is None and reader.nodes([_BROKERS]):
        return Observations()
    values = {path: StoredValue(node.value, node.version) for path, node in (nodes or {}).items()}
    return mapping_rows(values, place.source, clock(), root=place.mapping_root, exists=nodes is not None)


def _groups(reader: TreeReader, place: ZooKeeperPlace, clock: Callable[[], Instant]) -> Observations:
    rows = _look(reader, place, clock)
    if any(group.registrations for group in rows.zookeeper_groups):
        time.sleep(place.interval_s)
        rows.add(_look(reader, place, clock))
    topics = _topics_of(rows.zookeeper_groups)
    if rows.zookeeper_groups:
        names = topics if topics is not None else [_TOPICS]
        rows.add(_rows(reader.trees([_BROKERS, *names]), place, clock()))
    return rows


def _look(reader: TreeReader, place: ZooKeeperPlace, clock: Callable[[], Instant]) -> Observations:
    nodes = reader.trees([_CONSUMERS])
    return _rows(nodes, place, clock())


def _rows(nodes: dict[str, TreeNode], place: ZooKeeperPlace, at: Instant) -> Observations:
    as_text = {path: node.as_text() for path, node in nodes.items()}
    return observe_nodes(as_text, place.source, at, complete=True)


def _topics_of(groups: Iterable[ZooKeeperGroup]) -> list[str] | None:
    """The nodes of topics that groups read. None: a group reads topics by a pattern, so all may be meant."""
    names: set[str] = set()
    for group in groups:
        for row in group.registrations or ():
            if row.pattern != PatternKind.STATIC or row.subscription is None:
                return None
            names |= {subscribed.topic for subscribed in row.subscription}
        names |= {owner.topic for owner in group.owners or ()}
        names |= {offset.topic for offset in group.offsets}
    return [f"{_TOPICS}/{name}" for name in sorted(names)]
