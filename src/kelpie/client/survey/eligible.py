"""Replicas that may still lead a partition without a leader (KIP-966), which only Kafka 4 tells."""

from kelpie.client.failures import ClientError
from kelpie.client.survey.asking import Asking
from kelpie.client.survey.topics import views_of
from kelpie.observations import OFFSETS_TOPIC
from kelpie.wire.api.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)

_MOST_PAGES = 50


async def ask_eligible(asking: Asking) -> None:
    """Adds views of the offsets topic that tell them, of the first broker that can."""
    for node in asking.reached:
        if asking.versions[node].speaks(DescribeTopicPartitionsRequest):
            try:
                await _ask(asking, node)
            except ClientError:
                continue  # It is silent now, and its other rows say so.
            return


async def _ask(asking: Asking, node: int) -> None:
    cursor: RequestCursor | None = None
    source = asking.source(node)
    for _ in range(_MOST_PAGES):
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=OFFSETS_TOPIC)], cursor=cursor)
        response, at = await asking.ask(node, request)
        for topic in response.topics:
            asking.seen.partitions += views_of(topic, node, at, source)
        follows = response.next_cursor
        if follows is None:
            return
        cursor = RequestCursor(topic_name=follows.topic_name, partition_index=follows.partition_index)
