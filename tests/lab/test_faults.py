"""Faults, against a fabric of cardboard."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kelpie.errors import ErrorCode
from kelpie.lab import Action, Filter, LabError
from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kelpie.wire.api.produce import ProduceRequest
from tests.lab.client import Client, heartbeat
from tests.lab.stub import SyncStubCluster

WaitUntil = Callable[..., None]


@pytest.fixture
def cluster() -> Iterator[SyncStubCluster]:
    with SyncStubCluster(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: SyncStubCluster) -> Iterator[Client]:
    with Client(cluster) as client:
        yield client


def _topics(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


def test_matching_requests_get_the_error_and_others_do_not(cluster: SyncStubCluster, client: Client) -> None:
    """The broker never sees what is refused, and the fault counts what it struck."""
    with cluster.fail(ErrorCode.NOT_COORDINATOR, api="Heartbeat", group="billing-*") as fault:
        assert client.ask(heartbeat("billing-1")).error_code == 16
        assert client.ask(heartbeat("orders-1")).error_code == 0
        assert fault.hits == 1
        assert len(cluster.stub.handled) == 1
    assert client.ask(heartbeat("billing-1")).error_code == 0
    assert (fault.hits, fault.active) == (1, False)


def test_a_budget_ends_a_fault(cluster: SyncStubCluster, client: Client) -> None:
    """The fourth request is the first one through."""
    fault = cluster.fail(27, api="Heartbeat", count=3)
    assert [client.ask(heartbeat("g")).error_code for _ in range(5)] == [27, 27, 27, 0, 0]
    assert (fault.hits, fault.active) == (3, False)


_BY_ID = FetchTopic(
    topic_id=b"orders".ljust(16),
    partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)],
)
_GROUP = OffsetFetchRequestGroup(group_id="of", topics=None)
FILTERS: list[tuple[dict[str, Any], tuple[Any, int], bool]] = [
    ({"api": 12}, (heartbeat("g"), 0), True),
    ({"api": "heartbeat"}, (heartbeat("g"), 0), True),
    ({"api": "Offset*"}, (heartbeat("g"), 0), False),
    ({"node": 1}, (heartbeat("g"), 0), True),
    ({"node": 2}, (heartbeat("g"), 0), False),
    ({"client": "te?t"}, (heartbeat("g"), 0), True),
    ({"client": "other"}, (heartbeat("g"), 0), False),
    ({"group": "g", "client": "other"}, (heartbeat("g"), 0), False),
    ({"group": "k"}, (FindCoordinatorRequest(key="k"), 0), True),
    ({"group": "t"}, (FindCoordinatorRequest(key="t", key_type=1), 1), False),
    ({"group": "k2"}, (FindCoordinatorRequest(coordinator_keys=["k1", "k2"]), 4), True),
    ({"group": "d"}, (DescribeGroupsRequest(groups=["c", "d"]), 0), True),
    ({"group": "of"}, (OffsetFetchRequest(groups=[_GROUP]), 8), True),
    ({"topic": "ord*"}, (_topics("orders", "other"), 1), True),
    ({"topic": "ord*"}, (_topics("other"), 1), False),
    ({"topic": "ord*"}, (MetadataRequest(topics=None), 1), False),
    ({"topic": "orders"}, (FetchRequest(max_wait_ms=0, min_bytes=0, topics=[_BY_ID]), 13), True),
]


@pytest.mark.parametrize(("wanted", "asked", "matches"), FILTERS)
def test_a_filter_matches(
    cluster: SyncStubCluster, client: Client, wanted: dict[str, Any], asked: tuple[Any, int], matches: bool
) -> None:
    """All that is given must match: API, node, client, topic (also by id) and group."""
    message, version = asked
    fault = cluster.observe(**wanted)
    client.send(message, version)
    if matches:
        fault.wait()
        (seen,) = fault.requests
        assert (seen.node_id, seen.header.client_id, seen.request) == (1, "test", message)
    else:
        assert client.receive_frame()
        assert fault.hits == 0


def test_an_error_in_metadata_still_names_the_brokers(cluster: SyncStubCluster, client: Client) -> None:
    """Clients drop an answer without brokers before they look at its topics."""
    cluster.fail(ErrorCode.LEADER_NOT_AVAILABLE, api="Metadata")
    metadata = client.ask(_topics("orders"), 1)
    assert [topic.error_code for topic in metadata.topics] == [5]
    assert [broker.node_id for broker in metadata.brokers] == [1, 2]


def test_an_error_without_an_answer_to_carry_it_closes_the_connection(
    cluster: SyncStubCluster, client: Client
) -> None:
    """With acks=0 Kafka has no other way to tell the producer."""
    cluster.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, api="Produce")
    client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 3)
    assert client.is_closed()


def test_a_delay_holds_a_request_for_its_time(cluster: SyncStubCluster, client: Client) -> None:
    """Not less, and what comes after it waits as well."""
    cluster.delay(120, api="Heartbeat")
    began = time.monotonic()
    sent = [client.send(heartbeat("g")), client.send(ApiVersionsRequest())]
    assert client.receive()[0] == sent[0]
    assert time.monotonic() - began >= 0.12
    assert client.receive()[0] == sent[1]


def test_lifting_a_delay_lets_its_requests_go(cluster: SyncStubCluster, client: Client) -> None:
    """Also those that would have been held for ever."""
    fault = cluster.delay(None, api="Heartbeat", count=1)
    client.send(heartbeat("g"))
    fault.wait()
    assert client.says_nothing()
    assert not cluster.stub.handled
    fault.lift()
    assert client.receive()[1].error_code == 0
    fault.lift()


def test_silence_mutes_the_connection_only(cluster: SyncStubCluster, client: Client) -> None:
    """Later answers must not overtake; another connection is well."""
    fault = cluster.silence(api="Heartbeat", count=1)
    client.send(heartbeat("g"))
    client.send(heartbeat("g"))
    assert client.says_nothing()
    with Client(cluster) as other:
        assert other.ask(heartbeat("g")).error_code == 0
    assert fault.hits == 1
    fault.lift()


def test_after_the_work_is_done_the_answer_can_be_lost(cluster: SyncStubCluster, client: Client) -> None:
    """A commit that was stored, of which the client never hears."""
    cluster.disconnect(api="Heartbeat", after=True, count=1)
    client.send(heartbeat("g"))
    assert client.is_closed()
    assert cluster.stub.handled == [(1, heartbeat("g"))]


def test_after_the_work_is_done_the_answer_can_be_another_or_late(
    cluster: SyncStubCluster, client: Client
) -> None:
    """The broker has handled both."""
    with cluster.fail(ErrorCode.REQUEST_TIMED_OUT, api="Heartbeat", after=True):
        assert client.ask(heartbeat("g")).error_code == 7
    with cluster.delay(None, api="Heartbeat", after=True) as late:
        client.send(heartbeat("g"))
        assert client.says_nothing()
        assert len(cluster.stub.handled) == 2
        late.lift()
        assert client.receive()[1].error_code == 0


def test_disconnecting_breaks_the_connection_before_the_work(
    cluster: SyncStubCluster, client: Client
) -> None:
    """The broker never saw the request."""
    cluster.disconnect(api="Heartbeat")
    client.send(heartbeat("g"))
    assert client.is_closed()
    assert not cluster.stub.handled


def test_the_first_fault_strikes_and_all_observers_see(cluster: SyncStubCluster, client: Client) -> None:
    """A request is struck once."""
    before = cluster.observe(api="Heartbeat")
    first = cluster.fail(16, api="Heartbeat", count=1)
    second = cluster.fail(27, api="Heartbeat")
    after = cluster.observe(api="Heartbeat")
    assert [client.ask(heartbeat("g")).error_code for _ in range(2)] == [16, 27]
    assert [fault.hits for fault in (before, first, second, after)] == [2, 1, 1, 2]
    assert [fault.id for fault in cluster.faults] == [1, 2, 3, 4]


def test_waiting_for_what_does_not_come_ends(cluster: SyncStubCluster) -> None:
    """With the numbers of what came and what was waited for."""
    fault = cluster.observe(api="Heartbeat")
    with pytest.raises(TimeoutError, match=r"struck 0 times within 0\.05 s; 2 were waited for"):
        fault.wait(hits=2, limit_s=0.05)


def test_waiting_ends_with_the_hit(cluster: SyncStubCluster, client: Client) -> None:
    """The third of three, not the first."""
    fault = cluster.observe(api="Heartbeat")
    for _ in range(3):
        client.ask(heartbeat("g"))
    fault.wait(hits=3)
    assert fault.hits == 3


# Stalls


def test_a_stalled_connection_is_neither_read_nor_written(cluster: SyncStubCluster, client: Client) -> None:
    """An answer that is due waits as well; afterwards everything comes, in order."""
    with Client(cluster, client_id="other") as other:
        assert client.is_served()
        first = client.send(heartbeat("slow"))
        assert client.says_nothing()
        with cluster.stall(client="te*") as stall:
            assert other.ask(heartbeat("wake")).error_code == 0
            second = client.send(heartbeat("g"))
            assert client.says_nothing()
            assert stall.hits == 1
        assert [client.receive()[0] for _ in range(2)] == [first, second]


def test_a_stall_ends_by_itself(cluster: SyncStubCluster, client: Client, wait_until: WaitUntil) -> None:
    """After its duration, and lifting it then is harmless."""
    began = time.monotonic()
    stall = cluster.stall(duration_s=0.1)
    assert client.ask(heartbeat("g")).error_code == 0
    assert time.monotonic() - began >= 0.09
    wait_until(lambda: not stall.active)
    stall.lift()


def test_a_stall_of_a_group_finds_its_connections(cluster: SyncStubCluster, client: Client) -> None:
    """Those that have spoken for it, and those that begin to."""
    with Client(cluster) as member, Client(cluster) as newcomer:
        assert member.ask(heartbeat("billing")).error_code == 0
        stall = cluster.stall(group="bill*")
        member.send(ApiVersionsRequest())
        newcomer.send(heartbeat("billing"))
        assert member.says_nothing()
        assert newcomer.says_nothing()
        assert client.is_served()
        assert stall.hits == 2
        stall.lift()
        assert member.receive()[1].error_code == newcomer.receive()[1].error_code == 0


def test_a_stalled_broker_lets_others_work(cluster: SyncStubCluster, client: Client) -> None:
    """By node: connections that are opened during the stall are held too."""
    with cluster.stall(node=1), Client(cluster) as late, Client(cluster, node=1) as other:
        late.send(ApiVersionsRequest())
        assert late.says_nothing()
        assert other.is_served()
    assert client.is_served()


def test_two_stalls_hold_until_both_are_lifted(cluster: SyncStubCluster, client: Client) -> None:
    """They overlap without knowing each other."""
    first, second = cluster.stall(), cluster.stall(client="test")
    client.send(ApiVersionsRequest())
    first.lift()
    assert client.says_nothing()
    second.lift()
    assert client.receive()[1].error_code == 0


# Brokers and partitions


def test_a_killed_broker_refuses_connections_until_it_is_started(cluster: SyncStubCluster) -> None:
    """Its port stays its own meanwhile, and lifting the fault is one way to start it."""
    address = cluster.bootstrap_servers.split(",")[1].split(":")
    with Client(cluster, node=1) as client:
        assert client.is_served()
        fault = cluster.kill(2)
        assert client.is_closed()
        assert fault.hits == 1
    assert not cluster.is_alive(2)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address[0], int(address[1])), 5)
    with pytest.raises(LabError, match="Broker 2 is down already"):
        cluster.kill(2)
    cluster.start(2)
    with Client(cluster, node=1) as client:
        assert client.is_served()
    fault.lift()
    with pytest.raises(LabError, match="Broker 2 is up already"):
        cluster.start(2)
    with cluster.kill(2):
        assert not cluster.is_alive(2)
    cluster.wait_until(lambda state: state["brokers"][1]["alive"])
    with Client(cluster, node=1) as client:
        assert client.is_served()


def test_a_broker_that_stops_says_its_last_word(cluster: SyncStubCluster) -> None:
    """Answers that the shutdown causes leave before the connections close."""
    with Client(cluster, node=1) as client:
        client.send(heartbeat("slow"))
        assert client.says_nothing()
        cluster.stop(2)
        assert client.receive()[1].error_code == 27
        assert client.is_closed()
    cluster.start(2)
    cluster.restart(2)
    assert cluster.stub.done == [("stop", 2), ("start", 2), ("stop", 2), ("start", 2)]


def test_a_broker_stops_though_a_client_does_not_read(cluster: SyncStubCluster) -> None:
    """A full send buffer must not keep it from going."""
    with Client(cluster, node=1) as client:
        client.socket.setblocking(False)
        frame = client.frame(ApiVersionsRequest())
        for _ in range(200):
            try:
                client.socket.send(frame * 1000)
            except BlockingIOError:
                break
        cluster.stop(2)
    assert not cluster.is_alive(2)


def test_each_circumstance_reaches_the_fabric_and_is_lifted(cluster: SyncStubCluster) -> None:
    """Lifting undoes it, once."""
    orders = ("orders", 1)
    faults = [
        (cluster.isolate(1), ("isolate", 1), ("rejoin", 1)),
        (cluster.freeze_metadata(1), ("freeze_metadata", 1), ("thaw_metadata", 1)),
        (cluster.lag(2, "orders", 1), ("lag", 2, orders), ("catch_up", 2, orders)),
        (cluster.lag(2), ("lag", 2, None), ("catch_up", 2, None)),
        (cluster.shrink_isr("orders", 1, [1]), ("shrink_isr", orders, [1]), ("catch_up", 2, orders)),
        (cluster.slow_load(500, 3), ("slow_load", 500, 3), ("slow_load", 0, 3)),
        (cluster.make_leaderless("orders", 1), ("make_leaderless", orders), None),
    ]
    done = cluster.stub.done
    assert done == [begun for _, begun, _ in faults]
    for fault, _, undone in faults:
        done.clear()
        fault.lift()
        fault.lift()
        assert done == ([undone] if undone else [])
    done.clear()
    cluster.elect("orders", 0, unclean=True)
    assert cluster.lose_offsets("g").hits == cluster.expire_offsets().hits == 1
    assert done == [("elect", ("orders", 0), True), ("lose_offsets", "g"), ("expire_offsets", None)]


def test_a_circumstance_counts_the_requests_that_meet_it(cluster: SyncStubCluster, client: Client) -> None:
    """A frozen broker strikes with each request that it answers from its old view."""
    with cluster.freeze_metadata(1) as fault:
        client.ask(_topics("orders"), 1)
        assert fault.hits == 1


BAD: list[tuple[Callable[[SyncStubCluster], object], str]] = [
    (lambda cluster: cluster.kill(9), "There is no broker 9; there are 1 to 2"),
    (lambda cluster: cluster.fail(12345), "Kafka has no error 12345"),
    (lambda cluster: cluster.fail(1, api="Hartbeat"), "Did you mean Heartbeat"),
    (lambda cluster: cluster.fail(1, api=999), "No API is called 999"),
    (lambda cluster: cluster.fail(1, node=7), "There is no broker 7"),
    (lambda cluster: cluster.fail(1, count=0), "strikes 0 times"),
    (lambda cluster: cluster.delay(-5), "A delay of -5 ms"),
    (lambda cluster: cluster.stall(duration_s=0), "A stall of 0 s"),
    (lambda cluster: cluster.make_leaderless("nope", 0), "There is no topic 'nope'"),
    (lambda cluster: cluster.elect("orders", 2), "has no partition 2; it has 2"),
    (lambda cluster: cluster.shrink_isr("orders", 0, [7]), r"has replicas on \[1, 2\]"),
    (lambda cluster: cluster.create_topic("orders"), "it exists"),
    (lambda cluster: cluster.open(), "open already"),
]


@pytest.mark.parametrize(("do", "message"), BAD)
def test_what_cannot_be_done_is_said_clearly(
    cluster: SyncStubCluster, do: Callable[[SyncStubCluster], object], message: str
) -> None:
    """And nothing is left half done."""
    with pytest.raises(LabError, match=message):
        do(cluster)
    assert not cluster.faults


def test_actions_and_filters_describe_themselves(cluster: SyncStubCluster) -> None:
    """For logs and for the control API."""
    fault = cluster.strike(Filter(api="Fetch", topic="orders"), Action("error", ErrorCode.NOT_CONTROLLER))
    assert str(fault) == "fault 1 (error 41 NOT_CONTROLLER for api=Fetch topic=orders)"
