"""Frames, headers, and what happens when they are not what they should be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.wire.api.api_versions import ApiVersionsResponse
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kelpie.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse
from kelpie.wire.api.metadata import MetadataRequest
from kelpie.wire.framing import (
    Frames,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kelpie.wire.malformed import Malformed


def test_the_coordinator_request_of_an_old_consumer_is_kafkas_to_the_byte() -> None:
    """FindCoordinator v0 as Kafka 0.9 sends it."""
    frame = encode_request(RequestHeader(10, 0, 30, "consumer-1"), FindCoordinatorRequest(key="g"))
    assert frame == bytes.fromhex("00000017 000a 0000 0000001e 000a") + b"consumer-1" + bytes.fromhex(
        "0001 67"
    )


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("client_id", [None, "", "consumer-é"])
def test_requests_survive_the_way_there_and_back(version: int, client_id: str | None) -> None:
    """Header version 1 and 2; the client id keeps its old form in both."""
    header = RequestHeader(12, version, 7, client_id)
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frames = Frames().feed(encode_request(header, message))
    assert [decode_request(frame) for frame in frames] == [(header, message)]


@pytest.mark.parametrize("version", [0, 4])
def test_responses_survive_the_way_there_and_back(version: int) -> None:
    """Header version 0 and 1."""
    [frame] = Frames().feed(encode_response(12, version, 7, HeartbeatResponse(error_code=27)))
    assert decode_response(12, version, frame) == (7, HeartbeatResponse(error_code=27))


def test_an_api_versions_answer_never_has_tags_in_its_header() -> None:
    """A client that asked in too new a version must be able to read the answer (KIP-511)."""
    answer = ApiVersionsResponse(error_code=0, api_keys=[])
    assert encode_response(18, 3, 7, answer) == bytes.fromhex("0000000c 00000007 0000 01 00000000 00")


@given(st.lists(st.binary(max_size=40), max_size=5), st.data())
def test_frames_come_out_whole_however_the_bytes_arrive(payloads: list[bytes], data: st.DataObject) -> None:
    """TCP knows no messages."""
    stream = b"".join(len(payload).to_bytes(4) + payload for payload in payloads)
    frames, found = Frames(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += frames.feed(stream[:cut])
        stream = stream[cut:]
    assert found == payloads
    assert frames.incomplete == 0


@pytest.mark.parametrize("length", ["ffffffff", "7fffffff"])
def test_a_frame_of_impossible_length_is_refused_before_it_is_gathered(length: str) -> None:
    """An HTTP request on a Kafka port looks like a frame of a gigabyte."""
    with pytest.raises(Malformed, match="a frame of"):
        Frames().feed(bytes.fromhex(length))


def test_an_unknown_version_still_yields_its_header() -> None:
    """The broker must answer ApiVersions in version 0 then, and close the connection otherwise."""
    frame = bytes.fromhex("0012 0063 00000007 0001 63 00")
    with pytest.raises(UnsupportedVersion, match="ApiVersions version 99") as caught:
        decode_request(frame)
    assert caught.value.header == RequestHeader(18, 99, 7, "c")


def test_an_unknown_api_still_yields_its_header() -> None:
    """A 0.9 broker meets ApiVersions like this."""
    with pytest.raises(UnsupportedVersion, match="API 999 version 0"):
        decode_request(bytes.fromhex("03e7 0000 00000007 ffff"))


@pytest.mark.parametrize("raw", ["", "000a", "000a 0000 00000007 0009 61", "000a 0000 00000007 fffe"])
def test_a_torn_request_header_is_malformed(raw: str) -> None:
    """Not an IndexError."""
    with pytest.raises(Malformed):
        decode_request(bytes.fromhex(raw))


def test_bytes_behind_a_request_are_not_looked_at() -> None:
    """librdkafka 2.16 asks for all metadata (v13) with three bytes too many; Kafka's brokers answer it."""
    frame = bytes.fromhex("0003 000d 00000003 0007 72646b61666b61 00 00 00 00 00 01 00 00")
    _, request = decode_request(frame)
    assert request == MetadataRequest(topics=None, allow_auto_topic_creation=False)


@pytest.mark.parametrize("raw", ["", "0000", "00000007", "00000007 05"])
def test_a_torn_response_is_malformed(raw: str) -> None:
    """A broker that dies in the middle of a write leaves this."""
    with pytest.raises(Malformed):
        decode_response(10, 4, bytes.fromhex(raw))


def test_an_error_answer_of_kafka_0_9_is_read() -> None:
    """The answer of the incident: error 15, node −1, empty host, port −1."""
    frame = bytes.fromhex("0000001e 000f ffffffff 0000 ffffffff")
    answer = FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1)
    assert decode_response(10, 0, frame) == (30, answer)
