from kelpie.model.names import TopicPartition


def test_a_topic_partition_reads_as_it_does_in_kafkas_logs() -> None:
    """Operators search logs and data directories for this spelling."""
    assert str(TopicPartition("__consumer_offsets", 12)) == "__consumer_offsets-12"
    assert f"{TopicPartition('orders', 3)}" == "orders-3"


def test_topic_partitions_sort_by_topic_then_by_number() -> None:
    """Partition 10 comes after partition 9; a sort by text would put it before."""
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]) == [
        TopicPartition("a", 9),
        TopicPartition("a", 10),
        TopicPartition("b", 0),
    ]
