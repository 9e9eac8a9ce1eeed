"""The listener, against a fabric of cardboard."""

import logging
import os
import struct
from collections.abc import Callable, Iterator

import pytest

from kelpie.lab import LabDefect
from kelpie.wire.api.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kelpie.wire.api.create_acls import CreateAclsRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest
from kelpie.wire.api.produce import ProduceRequest
from kelpie.wire.framing import RequestHeader, decode_response, encode_request
from tests.lab.client import Client, heartbeat
from tests.lab.stub import SyncStubCluster

WaitUntil = Callable[..., None]


@pytest.fixture
def cluster() -> Iterator[SyncStubCluster]:
    with SyncStubCluster(1) as cluster:
        yield cluster


def test_answers_leave_in_the_order_of_the_requests(cluster: SyncStubCluster) -> None:
    """Clients match answers by their order; a request that waits holds back those behind it."""
    with Client(cluster) as client, Client(cluster) as other:
        sent = [client.send(heartbeat("slow")), client.send(heartbeat("a")), client.send(heartbeat("b"))]
        assert client.says_nothing()
        assert len(cluster.stub.handled) == 1, "the broker looks at one request of a connection at a time"
        assert other.ask(heartbeat("wake")).error_code == 0
        answers = [client.receive() for _ in sent]
        assert [correlation for correlation, _ in answers] == sent
        assert [answer.error_code for _, answer in answers] == [27, 0, 0]


def test_many_requests_in_one_write_are_all_answered_in_order(cluster: SyncStubCluster) -> None:
    """Pipelining: more frames than may wait at once arrive in one go, and reading is resumed."""
    with Client(cluster) as client:
        client.socket.sendall(b"".join(client.frame(heartbeat(f"g{at}")) for at in range(1000)))
        assert [client.receive()[0] for _ in range(1000)] == list(range(1, 1001))


def test_the_fabric_is_never_entered_twice(cluster: SyncStubCluster) -> None:
    """Answering a parked request from within another must not start the parked connection's next one."""
    with Client(cluster) as parked, Client(cluster) as waker:
        for _ in range(50):
            parked.send(heartbeat("slow"))
            parked.send(heartbeat("next"))
            assert parked.says_nothing(0.01)
            assert waker.ask(heartbeat("wake")).error_code == 0
            assert [parked.receive()[1].error_code for _ in range(2)] == [27, 0]


def test_a_deadline_of_the_fabric_is_kept(cluster: SyncStubCluster) -> None:
    """The timer follows next_deadline without a further request to push it."""
    cluster.stub.park_ms = 50
    with Client(cluster) as client:
        assert client.ask(heartbeat("slow")).error_code == 22


def test_no_answer_where_the_protocol_has_none(cluster: SyncStubCluster) -> None:
    """A produce request with acks=0 gets no answer, and the next request its own."""
    with Client(cluster) as client:
        client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 3)
        assert client.ask(heartbeat("g")).error_code == 0


@pytest.mark.parametrize("version", [5, 9, 127, 32767, -1])
def test_api_versions_that_is_not_spoken_gets_a_body_of_version_0(
    cluster: SyncStubCluster, version: int
) -> None:
    """KIP-511: every client can read it and ask again, on the same connection."""
    with Client(cluster) as client:
        header = RequestHeader(18, version, 77, "future")
        request = encode_request(RequestHeader(18, 4, 77, "future"), ApiVersionsRequest())
        client.socket.sendall(request[:4] + struct.pack(">hh", 18, version) + request[8:])
        frame = client.receive_frame()
        assert decode_response(18, 0, frame) == (header.correlation_id, _unsupported(0, 4))
        assert client.is_served()


def _unsupported(first: int, last: int) -> ApiVersionsResponse:
    from kelpie.wire.api.api_versions import ApiVersion

    known = [ApiVersion(api_key=18, min_version=first, max_version=last)]
    return ApiVersionsResponse(error_code=35, api_keys=known)


def test_a_version_that_a_later_release_knows_is_too_new_for_an_older_persona() -> None:
    """Kafka 2.8 knows ApiVersions up to 3: a client of today falls back."""
    with SyncStubCluster(1, persona="2.8") as cluster, Client(cluster) as client:
        client.send(ApiVersionsRequest(), 4)
        assert decode_response(18, 0, client.receive_frame())[1] == _unsupported(0, 3)


def test_kafka_4_advertises_produce_of_old_and_does_not_serve_it() -> None:
    """Old versions stay in the list for librdkafka's sake (KAFKA-18659)."""
    message = ProduceRequest(acks=1, timeout_ms=1, topic_data=[])
    with SyncStubCluster(1) as cluster, Client(cluster) as client:
        (produce,) = [it for it in client.ask(ApiVersionsRequest()).api_keys if it.api_key == 0]
        assert produce.min_version == 0
        client.send(message, 2)
        assert client.is_closed()


def test_kafka_0_9_leaves_api_versions_without_an_answer() -> None:
    """Its network thread trips over it, closes nothing and goes on: clients wait in vain, then fall back."""
    with SyncStubCluster(1, persona="0.9") as cluster, Client(cluster) as client:
        for version in (0, 3):
            client.send(ApiVersionsRequest(), version)
        assert client.ask(FindCoordinatorRequest(key="g")).error_code == 15


@pytest.mark.parametrize(
    ("message", "version"),
    [(CreateAclsRequest(creations=[]), 1), (heartbeat("g"), 0)],
    ids=["an API that the lab does not serve", "a version that is refused"],
)
def test_what_the_persona_does_not_know_closes_the_connection(
    cluster: SyncStubCluster, message: object, version: int
) -> None:
    """Kafka throws InvalidRequestException, and closes."""
    with Client(cluster) as client:
        frame = client.frame(message, version)
        if version == 0:
            frame = frame[:6] + struct.pack(">h", 99) + frame[8:]
        client.socket.sendall(frame)
        assert client.is_closed()


def test_a_refused_call_closes_the_connection(cluster: SyncStubCluster) -> None:
    """The broker's own way to say that it does not understand."""
    with Client(cluster) as client:
        client.send(ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), 3)
        assert client.is_closed()


HOSTILE = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS hello": bytes.fromhex("16030100c8010000c40303"),
    "negative length": struct.pack(">i", -1),
    "huge length": struct.pack(">i", 2**31 - 1) + b"x" * 100,
    "empty frame": struct.pack(">i", 0),
    "short header": struct.pack(">i", 3) + b"abc",
    "broken body": struct.pack(">ihhih", 11, 12, 0, 1, 1) + b"x",
    "client id beyond the frame": struct.pack(">ihhih", 10, 18, 0, 1, 999),
    "garbage": os.urandom(4096),
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_cannot_be_understood_closes_the_connection(
    cluster: SyncStubCluster, sent: bytes, caplog: pytest.LogCaptureFixture, wait_until: WaitUntil
) -> None:
    """Only that connection, with a log line for those who want to know, and nothing on stderr."""
    caplog.set_level(logging.INFO, logger="kelpie.lab")
    with Client(cluster) as bystander, Client(cluster) as client:
        client.socket.sendall(sent)
        client.socket.shutdown(1)
        assert client.is_closed()
        assert bystander.is_served()
    assert not [record for record in caplog.records if record.levelno > logging.INFO]
    if sent is not HOSTILE["garbage"] and sent is not HOSTILE["TLS hello"]:
        wait_until(lambda: any("closes the connection" in line for line in caplog.messages))


def test_half_a_frame_holds_up_nobody_else(cluster: SyncStubCluster) -> None:
    """A slow client may take its time; the others are served meanwhile, and so is it in the end."""
    with Client(cluster) as slow, Client(cluster) as other:
        frame = slow.frame(heartbeat("g"))
        for at, byte in enumerate(frame):
            slow.socket.sendall(bytes([byte]))
            if at % 8 == 0:
                assert other.is_served()
        assert slow.receive()[1].error_code == 0


def test_a_connection_reset_while_its_request_waits_is_forgotten(
    cluster: SyncStubCluster, wait_until: WaitUntil
) -> None:
    """The late answer goes nowhere, and the broker does not mind."""
    with Client(cluster) as waker:
        client = Client(cluster)
        client.send(heartbeat("slow"))
        wait_until(lambda: cluster.stub.parked)
        client.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: close with a reset
        client.socket.close()
        wait_until(lambda: 'connections{node="1"} 1' in cluster.metrics())
        assert waker.ask(heartbeat("wake")).error_code == 0
        assert waker.is_served()


def test_a_client_that_does_not_read_is_not_read_from_either(
    cluster: SyncStubCluster, wait_until: WaitUntil
) -> None:
    """Back pressure: the answers that wait in memory stay few."""
    with Client(cluster) as client:
        client.socket.setsockopt(1, 8, 4096)  # SO_RCVBUF
        frame = client.frame(ApiVersionsRequest())
        client.socket.setblocking(False)
        accepted = 0
        stuck = 0
        while stuck < 20 and accepted < 64 << 20:
            try:
                accepted += client.socket.send(frame * 1000)
                stuck = 0
            except BlockingIOError:
                stuck += 1
                with Client(cluster) as other:
                    assert other.is_served()
        assert stuck == 20, "the broker must stop reading"
        handled = len(cluster.stub.handled)
        assert handled * 300 < 32 << 20


def test_metadata_of_all_topics_is_answered(cluster: SyncStubCluster) -> None:
    """A request whose list is null comes through."""
    with Client(cluster) as client:
        assert [broker.node_id for broker in client.ask(MetadataRequest(topics=None), 1).brokers] == [1]


def test_a_defect_of_the_broker_closes_the_connection_and_comes_out_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A test that uses the lab must not pass when the lab itself went wrong."""
    cluster = SyncStubCluster(1).open()
    with Client(cluster) as client, Client(cluster) as other:
        client.send(heartbeat("broken"))
        assert client.is_closed()
        assert other.is_served()
    with pytest.raises(LabDefect, match="a defect of the broker"):
        cluster.__exit__(None, None, None)
    assert "a defect of the broker" in caplog.text


def test_requests_are_logged_on_request(cluster: SyncStubCluster, caplog: pytest.LogCaptureFixture) -> None:
    """Every request and answer, for those who ask for it."""
    caplog.set_level(logging.DEBUG, logger="kelpie.lab")
    with Client(cluster) as client:
        client.ask(heartbeat("billing"))
    assert any("Heartbeat v0 of client 'test'" in line and "billing" in line for line in caplog.messages)
