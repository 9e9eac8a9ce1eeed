"""Which thread reads which partition: the range formula of Kafka 0.8, topic by topic.

Threads of all consumers in the order of their names (as strings: …-10 comes before …-2), partitions in the
order of their numbers. Of P partitions and C threads, with N = P ÷ C and M = P mod C, the i-th thread
gets [i·N + min(i, M), (i+1)·N + min(i+1, M)). Every consumer computes it alone, and all agree while they see
the same nodes.
"""

from collections.abc import Iterable, Mapping, Sequence

from kelpie.model.names import TopicPartition
from kelpie.zookeeper.nodes import thread_id

Threads = Mapping[str, int]
"""Threads per topic, of one consumer."""


def threads_of_topic(topic: str, members: Mapping[str, Threads]) -> list[str]:
    """The ids of all threads that read a topic, in the order of the formula."""
    return sorted(
        thread_id(consumer, number)
        for consumer, threads in members.items()
        for number in range(threads.get(topic, 0))
    )


def range_of(position: int, threads: int, partitions: Sequence[int]) -> Sequence[int]:
    """The partitions of the thread at this position."""
    share, extra = divmod(len(partitions), threads)
    start = position * share + min(position, extra)
    stop = (position + 1) * share + min(position + 1, extra)
    return partitions[start:stop]


def assign(
    consumer: str, members: Mapping[str, Threads], partitions: Mapping[str, Sequence[int]]
) -> dict[TopicPartition, str]:
    """The partitions of one consumer, each with the id of its thread."""
    mine: dict[TopicPartition, str] = {}
    for topic in members.get(consumer, {}):
        threads = threads_of_topic(topic, members)
        for number in range(members[consumer][topic]):
            thread = thread_id(consumer, number)
            own = range_of(threads.index(thread), len(threads), partitions.get(topic, ()))
            mine.update(dict.fromkeys((TopicPartition(topic, partition) for partition in own), thread))
    return mine


def assign_all(
    members: Mapping[str, Threads], partitions: Mapping[str, Sequence[int]]
) -> dict[TopicPartition, str]:
    """The thread of every partition, as all members together compute it."""
    everything: dict[TopicPartition, str] = {}
    for consumer in members:
        everything.update(assign(consumer, members, partitions))
    return everything


def consumer_of(thread: str) -> str:
    """The consumer of a thread's id."""
    return thread.rpartition("-")[0]


def partitions_of(partitions: Iterable[TopicPartition]) -> str:
    """In short, for a sentence: "orders-0, orders-1"."""
    return ", ".join(map(str, sorted(partitions))) or "none"
