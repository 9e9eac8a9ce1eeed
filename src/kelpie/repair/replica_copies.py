"""Copies of a partition that living brokers hold though it has no leader: behind, but better than nothing.

Only leaders answer consumers. Tools that compare replicas ask as replica −2: every replica answers them, up
to its own high watermark, whether the partition has a leader or not. Kafka 0.9 and Kafka 4 both do so.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from kelpie.client.admin.log_ends import ask_offsets_at
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.offsets_topic import ask_records
from kelpie.cluster import ClusterView
from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.observations import Commit
from kelpie.observations.offsets_topic import OffsetsPartition
from kelpie.questions.list_offsets import EARLIEST, LATEST
from kelpie.questions.question import ANY_REPLICA

_AT_ONCE = 4 * 1024 * 1024
_AT_MOST = 1024 * 1024 * 1024


@dataclass(frozen=True)
class ReplicaCopy:
    """The part of one copy that was read. `failure` says why it is not all of it."""

    node: int
    source: str
    commits: list[Commit] = field(default_factory=list)
    read_to: int = -1
    end: int = -1
    """Where the copy ends. No broker gives out records beyond its high watermark."""
    failure: str = ""

    @property
    def unread(self) -> int:
        """How many offsets at its end could not be read."""
        return max(self.end - self.read_to, 0) if self.read_to >= 0 else 0


async def read_copy(
    nodes: Nodes, cluster: ClusterView, node: int, partition: TopicPartition, groups: Collection[str] = ()
) -> ReplicaCopy:
    """The commits in one broker's copy of a partition of the offsets topic; of these groups, or of all."""
    source = f"copy of {partition} on {cluster.broker_name(node)}"
    first = (await ask_offsets_at(nodes, node, {partition: EARLIEST}, ANY_REPLICA))[partition]
    last = (await ask_offsets_at(nodes, node, {partition: LATEST}, ANY_REPLICA))[partition]
    failure = first.failure or last.failure
    if failure:
        return ReplicaCopy(node, source, failure=failure)
    reader = OffsetsPartition()
    commits: list[Commit] = []
    at, size = first.offset, 0
    while at < last.offset and size < _AT_MOST:
        try:
            answer = await ask_records(nodes, node, partition.partition, at, _AT_ONCE, replica_id=ANY_REPLICA)
        except ClientError as error:
            failure = error.reason
            break
        if answer.error:
            failure = f"broker {node} does not let its copy of {partition} be read: {describe(answer.error)}"
            break
        size += len(answer.records)
        rows = [placed.row for placed in reader.read(answer.records, source)]
        commits += [row for row in rows if isinstance(row, Commit) and (not groups or row.group in groups)]
        if reader.next_offset is None or reader.next_offset <= at:
            break  # The high watermark: no broker gives out what follows.
        at = reader.next_offset
    return ReplicaCopy(node, source, commits, at, last.offset, failure)
