"""Kafka 0.8: ZooKeeper expires the session of a consumer that is alive and cut off from it.

The connection to ZooKeeper loses everything for longer than the session lasts, while
brokers can be reached. ZooKeeper gives the partitions to the other consumer; the first
one reads on, until it hears of its expiry. Then it registers itself anew.
"""

from kelpie.lab.scenarios.interruptible_network import Interruptible
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import GROUP, KAFKA_0_9, ZookeeperCluster, ZookeeperMember

NAME = "zookeeper-session-expired"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True
_SESSION_MS = 3_000


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, partitions=4)
    address, slash, path = cluster.hosts.partition("/")
    host, _, port = address.rpartition(":")
    network = Interruptible(host, int(port))
    stage.at_end(network.close)
    way = await network.open()
    stage.step(f"app-1 and app-2 of {GROUP} share four partitions. Sessions last {_SESSION_MS // 1000} s.")
    first = await ZookeeperMember.start(
        cluster, "app-1", hosts=f"{way}{slash}{path}", session_timeout_ms=_SESSION_MS
    )
    second = await ZookeeperMember.start(cluster, "app-2")
    stage.expect(await cluster.until_read(first, second), "all partitions have one owner, and are read")
    await stage.calm(cluster.cluster, needs_logs=True)

    stage.step("The network between app-1 and ZooKeeper loses everything.")
    network.interrupt()
    stage.expect(await second.until_owns(0, 1, 2, 3), "ZooKeeper expires the session; app-2 reads everything")
    stage.expect(first.owned == [0, 1], "app-1 does not know, and reads partitions 0 and 1 as well")

    stage.step("The network works again.")
    network.restore()
    stage.expect(await first.until_expired(), "app-1 hears that its session has expired")
    stage.expect(await cluster.until_read(first, second), "it is back in the group, in a new session")
    await stage.incident(cluster.cluster, finds={"KLP506": [GROUP]}, needs_logs=True)
