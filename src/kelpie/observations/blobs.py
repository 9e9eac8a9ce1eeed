"""What members of consumers' groups subscribe to and are assigned, read from the bytes in their records."""

from kelpie.model.names import TopicPartition
from kelpie.wire.consumer_protocol import decode_subscription, partitions_in
from kelpie.wire.malformed import Malformed

Read = tuple[tuple[str, ...] | None, tuple[TopicPartition, ...] | None]


def read_blobs(subscription: bytes, assignment: bytes) -> Read:
    """Topics and partitions; None if the bytes are missing or not in the consumer protocol."""
    try:
        subscribed = tuple(decode_subscription(subscription)[1].topics) if subscription else None
        assigned = tuple(partitions_in(assignment))
    except Malformed:
        return None, None  # Some clients call their own bytes "consumer"; Kafka does not look at them either.
    return subscribed, assigned
