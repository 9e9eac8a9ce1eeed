"""What members say of themselves in bytes."""

from kelpie.model.names import TopicPartition
from kelpie.observations.offsets_topic import read_blobs
from kelpie.wire.consumer_protocol import Assignment, Subscription, encode
from kelpie.wire.consumer_protocol import rows_of as assignment_rows

_SUBSCRIPTION = encode(Subscription(topics=["orders"]), 0)
_ASSIGNMENT = encode(Assignment(assigned_partitions=assignment_rows([TopicPartition("orders", 1)])), 0)


def test_member_with_an_undecodable_assignment_keeps_its_subscription() -> None:
    """Each of the two is bytes of its own: one that cannot be read says nothing of the other."""
    assert read_blobs(_SUBSCRIPTION, _ASSIGNMENT) == (("orders",), (TopicPartition("orders", 1),))
    assert read_blobs(_SUBSCRIPTION, b"\xff") == (("orders",), None)
