"""A real consumer of Kafka 0.8: the machine of `kelpie.zookeeper` on a real ZooKeeper and real brokers.

consumer.py   drives the machine; what applications use
session.py    one session with ZooKeeper, on kazoo
reader.py     reads the owned partitions from their leaders
"""

from kelpie.client.zookeeper_consumer.consumer import ZookeeperGroupConsumer

__all__ = ["ZookeeperGroupConsumer"]
