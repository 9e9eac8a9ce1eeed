"""The range formula of the ZooKeeper consumer."""

from hypothesis import given
from hypothesis import strategies as st

from kelpie.model.names import TopicPartition
from kelpie.zookeeper.assignment import assign, assign_all, range_of, threads_of_topic

NAMES = st.text("abcxyz-_.019", min_size=1, max_size=6)
MEMBERS = st.dictionaries(NAMES, st.dictionaries(st.sampled_from(["t", "u"]), st.integers(1, 12)), min_size=1)


@given(st.integers(0, 40), st.integers(1, 30))
def test_a_thread_gets_the_range_of_the_formula(partitions: int, threads: int) -> None:
    """[i·N + min(i, M), (i+1)·N + min(i+1, M)) with N = P ÷ C and M = P mod C."""
    share, extra = partitions // threads, partitions % threads
    for i in range(threads):
        expected = range(i * share + min(i, extra), (i + 1) * share + min(i + 1, extra))
        assert list(range_of(i, threads, range(partitions))) == list(expected)
        assert len(expected) == share + (i < extra)


@given(MEMBERS, st.integers(0, 20))
def test_all_members_together_take_every_partition_once(
    members: dict[str, dict[str, int]], number: int
) -> None:
    """Each computes its own share alone; the shares must neither overlap nor leave a gap."""
    partitions = {"t": range(number), "u": range(3)}
    shares = [assign(consumer, members, partitions) for consumer in members]
    taken = [partition for share in shares for partition in share]
    read = {topic for threads in members.values() for topic in threads}
    assert sorted(taken) == sorted(
        TopicPartition(topic, partition) for topic in read for partition in partitions[topic]
    )
    assert assign_all(members, partitions) == {
        partition: thread for share in shares for partition, thread in share.items()
    }


def test_threads_are_in_the_order_of_their_names_as_strings() -> None:
    """0.8.2 compares "consumer-number": the tenth thread stands before the second."""
    threads = threads_of_topic("t", {"b": {"t": 11}, "a": {"t": 1}, "c": {"u": 1}})
    assert threads == ["a-0", "b-0", "b-1", "b-10", *(f"b-{number}" for number in range(2, 10))]


def test_partitions_need_not_be_numbered_without_gaps() -> None:
    """The formula counts positions in the list, not numbers."""
    mine = assign("b", {"a": {"t": 1}, "b": {"t": 1}}, {"t": (0, 2, 5, 7, 9)})
    assert mine == {TopicPartition("t", 7): "b-0", TopicPartition("t", 9): "b-0"}
