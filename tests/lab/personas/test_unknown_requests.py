"""What a release does not know: it closes the connection, or, as 0.9 does, says nothing."""

from typing import Any

import pytest

from kelpie.broker.personas import PRODUCE, persona
from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.describe_topic_partitions import DescribeTopicPartitionsRequest
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.metadata import MetadataRequest
from kelpie.wire.api.produce import ProduceRequest
from kelpie.wire.framing import API_VERSIONS, RequestHeader, decode_response, encode_request
from tests.lab.personas import personas
from tests.lab.personas.cluster import Cluster
from tests.lab.personas.member import Member


@personas("0.9")
@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (ApiVersionsRequest(), 0),
        (ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 1),
        (MetadataRequest(topics=None), 1),
    ],
    ids=["ApiVersions 0", "ApiVersions 3", "Heartbeat 1", "Metadata 1"],
)
def test_0_9_does_not_answer_what_it_does_not_know(cluster: Cluster, request_: Any, version: int) -> None:
    """Clients of today wait for ApiVersions in vain, so they must be told to what broker they speak."""
    one = Member(cluster)
    one.client.send(request_, version)
    # The next request is answered as if nothing had been: answers come in order, so there was none before.
    assert one.described().group_state == "Dead"


@personas("2.8", "3.9")
def test_later_releases_close_the_connection(cluster: Cluster) -> None:
    """There is no answer that a client could be sure to read."""
    client = cluster.client()
    client.send(DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1), 0, kept=False)
    assert client.is_closed()


@personas("2.8", "3.9", "4.3")
@pytest.mark.parametrize("version", [5, 127, 32767, -1])
def test_api_versions_that_is_not_spoken_is_answered_in_version_0(cluster: Cluster, version: int) -> None:
    """KIP-511: UNSUPPORTED_VERSION and the versions of this one API, byte for byte; then it goes on."""
    client = cluster.client()
    asked = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    frame = bytearray(encode_request(RequestHeader(API_VERSIONS, 3, 7, "client"), asked))
    frame[6:8] = version.to_bytes(2, signed=True)
    _, answer = decode_response(API_VERSIONS, 0, client.exchange(bytes(frame), f"ApiVersions v{version}"))
    assert (answer.error_code, [each.api_key for each in answer.api_keys]) == (35, [API_VERSIONS])
    assert client.peek(ApiVersionsRequest(), 0).error_code == 0


@personas("4.3")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_4_3_advertises_produce_of_old_and_closes_the_connection(cluster: Cluster, version: int) -> None:
    """KAFKA-18659: librdkafka would compress nothing if they were not in the list."""
    client = cluster.client()
    spoken = {each.api_key: each.min_version for each in client.peek(ApiVersionsRequest(), 0).api_keys}
    assert spoken[PRODUCE] == 0
    client.send(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[]), version, kept=False)
    assert client.is_closed()


@personas("2.8", "3.9", "4.3")
def test_api_versions_are_those_of_the_release(cluster: Cluster) -> None:
    """The lab advertises what it serves, in the versions of the release."""
    client = cluster.client()
    answer = client.peek(ApiVersionsRequest(), 0)
    spoken = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    for key, versions in sorted(persona(cluster.persona).versions.items()):
        assert spoken[key] == (versions.first, versions.last)
