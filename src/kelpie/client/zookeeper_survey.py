"""What ZooKeeper keeps, as rows. A survey never fails: what cannot be asked is a row, too."""

from collections.abc import Callable
from dataclasses import dataclass

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.client.zookeeper import ZooKeeperError, connected
from kelpie.client.zookeeper_nodes import TreeReader
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked
from kelpie.observations.mapping_tree import StoredValue, mapping_rows

LIMIT_S = 10.0
_OF_KAFKA = "/brokers/ids"


@dataclass(frozen=True, slots=True)
class ZooKeeperPlace:
    """Where to ask, and how long."""

    hosts: str
    """As zookeeper.connect has them: HOST:PORT[,…][/PATH]."""
    mapping_root: str = KOP_ROOT
    """KoP's setting groupIdZooKeeperPath."""
    limit_s: float = LIMIT_S

    @property
    def source(self) -> str:
        return f"ZooKeeper at {self.hosts}"


def survey_zookeeper(place: ZooKeeperPlace, clock: Callable[[], Instant]) -> Observations:
    """Reads all trees that Kelpie knows. It blocks, for the time limit at most for each step."""
    try:
        with connected(place.hosts, place.limit_s, read_only=True, of_kafka=False) as client:
            return _mappings(TreeReader(client, place.hosts, place.limit_s), place, clock)
    except ZooKeeperError as error:
        return Observations(unasked=[Unasked("zookeeper", place.hosts, str(error), clock(), place.source)])


def _mappings(reader: TreeReader, place: ZooKeeperPlace, clock: Callable[[], Instant]) -> Observations:
    """A tree that is not there is a listing, too; but not where plain Kafka keeps its brokers."""
    nodes = reader.tree(place.mapping_root)
    if nodes is None and reader.nodes([_OF_KAFKA]):
        return Observations()
    values = {path: StoredValue(node.value, node.version) for path, node in (nodes or {}).items()}
    return mapping_rows(values, place.source, clock(), root=place.mapping_root, exists=nodes is not None)
