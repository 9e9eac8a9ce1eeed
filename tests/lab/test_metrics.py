"""What brokers count, and how it is written down."""

from typing import Any

from kelpie.lab import SyncCluster
from kelpie.lab.metrics import Meter, errors_in, exposition
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from tests.lab.client import Client, heartbeat
from tests.lab.prometheus import read_strictly
from tests.lab.stub import SyncStubCluster


def _samples(text: str) -> dict[str, int]:
    """By the sample as it is written."""
    return {sample.text: int(sample.value) for sample in read_strictly(text)}


def test_requests_errors_connections_and_bytes_are_counted() -> None:
    """By broker, API and error; also what was refused."""
    with SyncStubCluster(2) as cluster, Client(cluster) as client:
        client.ask(heartbeat("g"))
        client.ask(heartbeat("g"))
        client.ask(FindCoordinatorRequest(key="g"))
        with Client(cluster) as hostile:
            hostile.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert hostile.is_closed()
        samples = _samples(cluster.metrics())
    assert samples['kelpie_lab_requests_total{node="1",api="Heartbeat"}'] == 2
    error = 'kelpie_lab_errors_total{node="1",api="FindCoordinator",error="COORDINATOR_NOT_AVAILABLE"}'
    assert samples[error] == 1
    assert samples['kelpie_lab_connections_accepted_total{node="1"}'] == 2
    assert samples['kelpie_lab_connections_rejected_total{node="1"}'] == 1
    assert samples['kelpie_lab_connections{node="2"}'] == 0
    assert samples['kelpie_lab_received_bytes_total{node="1"}'] > 60
    assert samples['kelpie_lab_sent_bytes_total{node="1"}'] > 30


def test_partitions_and_groups_are_counted() -> None:
    """Led and offline partitions follow the brokers."""
    with SyncCluster(2) as cluster:
        cluster.create_topic("orders", 4, 1)
        before = _samples(cluster.metrics())
        cluster.kill(2)
        after = _samples(cluster.metrics())
    assert [before[f'kelpie_lab_led_partitions{{node="{node}"}}'] for node in (1, 2)] == [2, 2]
    assert (before["kelpie_lab_offline_partitions"], after["kelpie_lab_offline_partitions"]) == (0, 2)
    assert after['kelpie_lab_broker_up{node="2"}'] == 0


def test_labels_are_escaped() -> None:
    """Whatever a state may be called one day."""
    state: dict[str, Any] = {
        "brokers": [{"id": 1, "alive": True}],
        "topics": {},
        "groups": [{"group": "g", "state": 'a"b\\c\nd', "coordinator": 1}],
    }
    samples = _samples(exposition({1: Meter()}, state))
    assert samples['kelpie_lab_groups{node="1",state="a\\"b\\\\c\\nd"}'] == 1


def test_unknown_keys_and_codes_are_shown_as_numbers() -> None:
    """A metric must not fail for want of a name."""
    meter = Meter()
    meter.requests[999] += 1
    meter.errors[999, 9999] += 1
    samples = _samples(exposition({1: meter}, {"brokers": [], "topics": {}, "groups": []}))
    assert samples['kelpie_lab_errors_total{node="1",api="999",error="9999"}'] == 1


def test_errors_are_found_at_every_depth() -> None:
    """Of the answer, of its topics, of their partitions."""
    partition = MetadataResponsePartition(
        error_code=9, partition_index=0, leader_id=1, replica_nodes=[], isr_nodes=[]
    )
    topic = MetadataResponseTopic(error_code=5, name="t", partitions=[partition, partition])
    assert errors_in(MetadataResponse(brokers=[], topics=[topic], error_code=1)) == [5, 9, 9, 1]
    assert errors_in(MetadataResponse(brokers=[], topics=[])) == []
