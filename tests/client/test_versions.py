"""Which versions a broker speaks, and what is said where it speaks none."""

import pytest

from kelpie.client.client_errors import Unsupported
from kelpie.client.versions import BrokerVersions
from kelpie.wire.api.metadata import MetadataRequest

CONTROLLER = {1: (4, 17), 18: (0, 4), 52: (0, 2), 55: (0, 2), 62: (0, 4), 63: (0, 2)}
"""What a controller of Kafka 4.3.1 speaks, in part: Fetch, ApiVersions, Vote, BrokerRegistration …"""


def test_a_controller_is_told_as_one() -> None:
    """Its port was told as that of a broker that is too old."""
    versions = BrokerVersions(CONTROLLER, "127.0.0.1:9093")
    with pytest.raises(Unsupported, match=r"is a controller of the cluster \(KRaft\).* address of a broker"):
        versions.pick(MetadataRequest)


def test_a_broker_that_does_not_know_a_request_is_older() -> None:
    """Also one that is broker and controller at once, and knows metadata."""
    with pytest.raises(Unsupported, match="its release is older"):
        BrokerVersions({18: (0, 1)}).pick(MetadataRequest)
    assert not BrokerVersions({**CONTROLLER, 3: (0, 13)}).is_controller
