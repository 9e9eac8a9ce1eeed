import time
from collections.abc import Collection, Mapping

from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import Unavailable
from kelpie.real.hadoop import RealHadoop
from kelpie.real.s3 import RealS3
from kelpie.real.zookeeper import RealZooKeeper


class Pool:
    """Clusters that outlive one test: the same request gets the same cluster.

    A cluster of several brokers is closed when another cluster is opened: idle, it takes a tenth of a core.

    Settings are keywords with underscores for dots: Kafka's names hold no underscores.
    `often`: releases that are started so often that archiving their classes pays.
    """

    def __init__(self, often: Collection[str] = ()) -> None:
        self._often = often
        self._shared: dict[tuple[object, ...], RealCluster] = {}
        self._asked: dict[tuple[object, ...], float] = {}
        """When each of them was last asked for."""
        self._fresh: list[RealCluster] = []
        self._zookeeper: RealZooKeeper | None = None
        self._s3: RealS3 | None = None
        self._hadoop: RealHadoop | None = None
        self._missing: dict[str, Unavailable] = {}

    def shared(self, version: str = "4.3.1", brokers: int = 1, **config: object) -> RealCluster:
        """For tests that leave a cluster as whole as they found it. A broken one is replaced."""
        key = (version, brokers, *sorted((name, str(value)) for name, value in config.items()))
        self._asked[key] = time.monotonic()
        cluster = self._shared.get(key)
        if cluster is not None and all(node.up for node in cluster.nodes.values()):
            return cluster
        for other, idle in list(self._shared.items()):
            if other == key or idle.size > 1:
                self._shared.pop(other).close()
        self._shared[key] = self._open(version, brokers, config)
        return self._shared[key]

    def fresh(self, version: str = "4.3.1", brokers: int = 1, **config: object) -> RealCluster:
        """For tests that break things."""
        cluster = self._open(version, brokers, config)
        self._fresh.append(cluster)
        return cluster

    def zookeeper(self) -> RealZooKeeper:
        """A lone ZooKeeper, shared by all who ask. A broken one is replaced."""
        server = self._zookeeper
        if server is None or not any(node.up for node in server.nodes.values()):
            self._close_zookeeper()
            server = self._zookeeper = RealZooKeeper().open()
        return server

    def s3(self) -> RealS3:
        """An S3 server, shared by all who ask."""
        if self._s3 is None:
            self._s3 = RealS3().open()
        return self._s3

    def hadoop(self, *, yarn: bool = False) -> RealHadoop:
        """HDFS, with YARN if asked for, shared by all who ask."""
        if self._hadoop is not None and yarn and not self._hadoop.has_yarn:
            self._close_stores()
        if self._hadoop is None:
            self._hadoop = RealHadoop(yarn=yarn).open()
        return self._hadoop

    def close_idle(self, idle_s: float) -> None:
        """Closes shared clusters that nobody has asked for in so many seconds."""
        asked_by = time.monotonic() - idle_s
        for key in [key for key in self._shared if self._asked[key] <= asked_by]:
            self._shared.pop(key).close()

    def close_fresh(self) -> None:
        while self._fresh:
            self._fresh.pop().close()

    def close(self) -> None:
        self.close_fresh()
        while self._shared:
            self._shared.popitem()[1].close()
        self._close_zookeeper()
        self._close_stores()

    def _close_stores(self) -> None:
        for server in (self._s3, self._hadoop):
            if server is not None:
                server.close()
        self._s3 = self._hadoop = None

    def _close_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.close()
            self._zookeeper = None

    def _open(self, version: str, brokers: int, config: Mapping[str, object]) -> RealCluster:
        # A release that could not be fetched once is not fetched again for every test: that takes long.
        if version in self._missing:
            raise self._missing[version]
        try:
            settings = {name.replace("_", "."): value for name, value in config.items()}
            often = version in self._often
            return RealCluster(version, brokers, config=settings, archive_classes=often).open()
        except Unavailable as missing:
            self._missing[version] = missing
            raise
