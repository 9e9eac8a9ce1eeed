from collections.abc import Mapping

from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import Unavailable

_MOST_NODES = 7
"""An idle broker of Kafka 4 takes 2 to 4 % of a core."""


class Pool:
    """Clusters that outlive one test: the same request gets the same cluster.

    When shared clusters have too many nodes together, those that nobody has asked for longest are closed.

    Settings are keywords with underscores for dots: Kafka's names hold no underscores.
    """

    def __init__(self) -> None:
        self._shared: dict[tuple[object, ...], RealCluster] = {}
        self._fresh: list[RealCluster] = []
        self._missing: dict[str, Unavailable] = {}

    def shared(self, version: str = "4.3.1", brokers: int = 1, **config: object) -> RealCluster:
        """For tests that leave a cluster as whole as they found it. A broken one is replaced."""
        key = (version, brokers, *sorted((name, str(value)) for name, value in config.items()))
        cluster = self._shared.pop(key, None)
        if cluster is not None and not all(node.up for node in cluster.nodes.values()):
            cluster.close()
            cluster = None
        if cluster is None:
            cluster = self._open(version, brokers, config)
        self._shared[key] = cluster  # At the end: the first is the one that was asked for longest ago.
        while len(self._shared) > 1 and self._nodes() > _MOST_NODES:
            self._shared.pop(next(iter(self._shared))).close()
        return cluster

    def fresh(self, version: str = "4.3.1", brokers: int = 1, **config: object) -> RealCluster:
        """For tests that break things."""
        cluster = self._open(version, brokers, config)
        self._fresh.append(cluster)
        return cluster

    def close_fresh(self) -> None:
        while self._fresh:
            self._fresh.pop().close()

    def close(self) -> None:
        self.close_fresh()
        while self._shared:
            self._shared.popitem()[1].close()

    def _nodes(self) -> int:
        return sum(len(cluster.nodes) for cluster in self._shared.values())

    def _open(self, version: str, brokers: int, config: Mapping[str, object]) -> RealCluster:
        # A release that could not be fetched once is not fetched again for every test: that takes long.
        if version in self._missing:
            raise self._missing[version]
        try:
            settings = {name.replace("_", "."): value for name, value in config.items()}
            return RealCluster(version, brokers, config=settings).open()
        except Unavailable as missing:
            self._missing[version] = missing
            raise
