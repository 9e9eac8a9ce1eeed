"""Whether two surveys saw the same cluster.

The id of a cluster is what a broker says it is: another broker can say the same. Ids of topics (Kafka 2.8 and
later) are random numbers that a broker cannot guess. That of the offsets topic stays as long as the cluster;
other topics may be deleted and created again.
"""

from kelpie.observations.cluster import OFFSETS_TOPIC, TopicView
from kelpie.observations.collection import Observations


def saw_same_cluster(earlier: Observations, now: Observations) -> bool | None:
    """By ids of topics. None: neither survey tells enough."""
    before = {row.topic: row.topic_id for row in _by_time(earlier) if row.topic_id}
    present = {row.topic: row.topic_id for row in _by_time(now) if row.topic in before and not row.error}
    if any(topic_id == before[topic] for topic, topic_id in present.items()):
        return True
    # A topic that had an id has one for ever: without one, or with another, it is another topic.
    return False if OFFSETS_TOPIC in present else None


def _by_time(rows: Observations) -> list[TopicView]:
    return sorted(rows.topics, key=lambda row: row.at or 0)
