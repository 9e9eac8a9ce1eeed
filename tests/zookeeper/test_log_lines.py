"""Steps written as Kafka 0.8.2.2 logs them. The expected lines are of a real recording, with other names."""

from kelpie.zookeeper.config import Behaviour
from kelpie.zookeeper.log_lines import written
from kelpie.zookeeper.requests import Delete
from tests.zookeeper.stand import BACKOFF_MS, PATHS, Seat, Stand, partition


def log_of(seat: Seat) -> list[str]:
    return "".join(written(step, "c") for step in seat.machine.history.steps).splitlines()


def test_a_rebalance_is_logged_as_by_0_8() -> None:
    """Readers of real logs must understand what the lab writes."""
    seat = Stand(partitions=2).consumer(Behaviour.FAITHFUL).start()
    texts = [line.partition("] ")[2] for line in log_of(seat)]
    assert texts == [
        "INFO [c], begin registering consumer c in ZK (kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], end registering consumer c in ZK (kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], begin rebalancing consumer c try #0 (kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [ConsumerFetcherManager-0] Stopping leader finder thread "
        "(kafka.consumer.ConsumerFetcherManager)",
        "INFO [ConsumerFetcherManager-0] Stopping all fetchers (kafka.consumer.ConsumerFetcherManager)",
        "INFO [ConsumerFetcherManager-0] All connections stopped (kafka.consumer.ConsumerFetcherManager)",
        "INFO [c], Cleared all relevant queues for this fetcher (kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], Cleared the data chunks in all the consumer message iterators "
        "(kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], Committing all offsets after clearing the fetcher queues "
        "(kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], Releasing partition ownership (kafka.consumer.ZookeeperConsumerConnector)",
        "INFO Consumer c rebalancing the following partitions: ArrayBuffer(0, 1) for topic t "
        "with consumers: List(c-0) (kafka.consumer.RangeAssignor)",
        "INFO c-0 attempting to claim partition 0 (kafka.consumer.RangeAssignor)",
        "INFO c-0 attempting to claim partition 1 (kafka.consumer.RangeAssignor)",
        "INFO [c], c-0 successfully owned partition 0 for topic t "
        "(kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], c-0 successfully owned partition 1 for topic t "
        "(kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], Consumer c selected partitions : t:0: fetched offset = -1: consumed offset = -1,"
        "t:1: fetched offset = -1: consumed offset = -1 (kafka.consumer.ZookeeperConsumerConnector)",
        "INFO [c], end rebalancing consumer c try #0 (kafka.consumer.ZookeeperConsumerConnector)",
    ]


def test_a_line_begins_with_its_time_as_log4j_writes_it() -> None:
    """Milliseconds follow a comma."""
    seat = Stand().consumer(Behaviour.FAITHFUL).start()
    assert log_of(seat)[0].startswith("[1970-01-01 00:16:40,000] INFO ")


def test_conflict_and_failure_are_logged_as_by_0_8() -> None:
    """The exception stands on a line of its own, without a time."""
    stand = Stand(partitions=2)
    stand.other_member("z")
    stand.other_owner(1, "z-0")
    seat = stand.consumer(Behaviour.FAITHFUL).start()
    stand.other_member("b", stand.kafka)
    stand.advance(4 * BACKOFF_MS)
    log = log_of(seat)
    texts = [line.partition("] ")[2] for line in log]
    assert (
        "INFO conflict in /consumers/g/owners/t/1 data: c-0 stored data: z-0 (kafka.utils.ZkUtils$)" in texts
    )
    assert (
        "INFO [c], waiting for the partition ownership to be deleted: 1 "
        "(kafka.consumer.ZookeeperConsumerConnector)" in texts
    )
    assert (
        "INFO [c], Rebalancing attempt failed. Clearing the cache before the next rebalancing operation is "
        "triggered (kafka.consumer.ZookeeperConsumerConnector)" in texts
    )
    assert texts[-2] == (
        "ERROR [c], error during syncedRebalance (kafka.consumer.ZookeeperConsumerConnector)"
    )
    assert log[-1] == "kafka.common.ConsumerRebalanceFailedException: c can't rebalance after 3 retries"


def test_a_new_session_is_logged_as_by_0_8() -> None:
    """Its misspelling included."""
    stand = Stand()
    seat = stand.consumer(Behaviour.FAITHFUL).start()
    seat.expire()
    stand.tree.carry_out(stand.others, Delete(PATHS.owner(partition(0))))
    seat.connect()
    assert any(
        "[c], ZK expired; release old broker parition ownership; re-register consumer c (" in line
        for line in log_of(seat)
    )
