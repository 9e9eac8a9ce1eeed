"""The groups of the matrix, by their kind, and what they read."""

TOPIC = "orders"
INVOICES = "invoices"
"""What the transactional group writes."""
STATES = "states"
"""Compacted."""
ARCHIVE = "archive"
"""Nobody has written to it for a while."""
LINES, COUNTS = "streams-plaintext-input", "streams-wordcount-output"
"""What Kafka's own demonstration of Streams reads and writes."""

SHARE, STREAMS, CONNECT, SINK = "share", "streams", "connect", "connect-sink"
READERS = frozenset({"eager", "cooperative", "static", "kip848", "manual", "transactional", SINK})
"""They read the same topic, and commit."""
OTHERS = frozenset({"committed", "compacted", "quiet", SHARE, STREAMS, CONNECT})
"""They read a topic written in transactions, a compacted one with gaps, and a quiet one. The share group
reads the same topic as the readers; the application of Kafka Streams has its own; workers of Connect read
none as a group.
"""
COMMIT_NOTHING = frozenset({SHARE, CONNECT})
OLD_GROUP = "old"
"""It has no members, and committed once."""
WITH_JAVA = frozenset({STREAMS, CONNECT, SINK})
"""Their members are processes of their own."""
_SINCE_4 = frozenset({"kip848", SHARE, STREAMS})

RELEASES = ("4.3.1", "3.9.2", "2.8.2")


def kinds_of(release: str) -> frozenset[str]:
    """The kinds of groups that a release has. Its brokers of 3.9 run with ZooKeeper, without KIP-848."""
    kinds = READERS | OTHERS
    return kinds if release.startswith("4.") else kinds - _SINCE_4
