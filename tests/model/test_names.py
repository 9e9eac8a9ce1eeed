import pytest

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


def test_a_topic_partition_is_read_as_it_is_spelled() -> None:
    """Topics may hold hyphens: the last one counts."""
    name = TopicPartition("orders-of-today", 3)
    assert TopicPartition.parse(str(name)) == name


@pytest.mark.parametrize(
    "text", ["orders", "-3", "orders-", "orders-x", "orders-²", "orders-2147483648", "o-" + "9" * 5_000]
)
def test_a_text_without_topic_or_number_is_no_partition(text: str) -> None:
    """Kafka numbers partitions with 31 bits, in digits alone."""
    assert TopicPartition.parse(text) is None
