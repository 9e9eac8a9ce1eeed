"""How much lies in the log directories of brokers: all topics, all replicas (DescribeLogDirs, Kafka 1.0).

Every broker names all its replicas, so the answers are large where topics are many: not for every look.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kelpie.client.admin.asking import Asking, together
from kelpie.client.client_errors import ClientError
from kelpie.wire.api.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


@dataclass(frozen=True, slots=True)
class LogDirSizes:
    """In bytes."""

    by_broker: Mapping[int, int]
    """Of those that answered."""
    by_topic: Mapping[str, int]
    """With all replicas. Empty: not all brokers answered, so each sum would be too small."""


async def ask_log_dirs(asking: Asking) -> LogDirSizes:
    """Asks every broker once."""
    await asking.meet()
    by_broker: dict[int, int] = {}
    by_topic: Counter[str] = Counter()
    failed: list[int] = [node for node in asking.nodes.brokers if node not in asking.versions]

    async def ask(node: int) -> None:
        try:
            response, _ = await asking.ask(node, DescribeLogDirsRequest(topics=None))
        except ClientError:
            failed.append(node)
            return
        sizes = _sizes(response)
        by_broker[node] = sizes.total()
        by_topic.update(sizes)
        if response.error_code or any(result.error_code for result in response.results):
            failed.append(node)

    await together(*map(ask, asking.reached))
    return LogDirSizes(dict(sorted(by_broker.items())), {} if failed else dict(sorted(by_topic.items())))


def _sizes(response: DescribeLogDirsResponse) -> Counter[str]:
    """By topic. A replica that is being moved to another directory lies in both, and counts twice."""
    sizes: Counter[str] = Counter()
    for result in response.results:
        for topic in result.topics:
            sizes[topic.name] += sum(max(0, row.partition_size) for row in topic.partitions)
    return sizes
