"""Settings of a ZooKeeper consumer that are refused, with what is wrong."""

import pytest

from kelpie.zookeeper.config import BadConfig, Subscription, ZookeeperConsumerConfig


@pytest.mark.parametrize(
    "group", ["", "a/b", "/", "..", ".", "zookeeper", "a\nb", "\x00", "a\u0085", "\ud800"]
)
def test_a_group_that_cannot_be_a_node_of_zookeeper_is_refused(group: str) -> None:
    """Part of a path: "a/b" would be another group's folder, and ZooKeeper refuses control characters."""
    with pytest.raises(BadConfig, match="name of a node"):
        ZookeeperConsumerConfig(group_id=group, subscription=Subscription({"orders": 1}))


@pytest.mark.parametrize("topic", ["", "a/b", "../ids", "a\tb"])
def test_a_topic_that_cannot_be_a_node_of_zookeeper_is_refused(topic: str) -> None:
    """Below a topic's node there are others, with other values."""
    with pytest.raises(BadConfig, match="name of a topic"):
        ZookeeperConsumerConfig(group_id="g", subscription=Subscription({topic: 1}))


@pytest.mark.parametrize("group", ["billing", "billing eu", "биллинг", "a.b", "...", "$(id)"])
def test_other_groups_are_taken(group: str) -> None:
    """Kafka 0.8 took more names than today's letters, digits, '.', '_' and '-'."""
    assert ZookeeperConsumerConfig(group_id=group, subscription=Subscription({"orders": 1})).group_id == group
