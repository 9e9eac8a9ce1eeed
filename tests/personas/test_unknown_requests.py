"""What a release does not know: it closes the connection, or, as 0.9 does, says nothing."""

from typing import Any

import pytest

from kelpie.broker.personas import persona
from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.describe_topic_partitions import DescribeTopicPartitionsRequest
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.metadata import MetadataRequest
from tests.personas import personas
from tests.personas.cluster import Cluster
from tests.personas.member import Member


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


@personas("2.8", "3.9")
def test_api_versions_are_those_of_the_release(cluster: Cluster) -> None:
    """The lab advertises what it serves, in the versions of the release."""
    client = cluster.client()
    answer = client.peek(ApiVersionsRequest(), 0)
    spoken = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    for key, versions in sorted(persona(cluster.persona).versions.items()):
        assert spoken[key] == (versions.first, versions.last)
