"""What resets and validations of positions share: requests to the leaders of partitions, and retries of them.

A partition is not asked for again before its request has ended. A partition without a leader waits for
metadata. If the leader has just failed, it waits for the back-off.
"""

from dataclasses import dataclass

from kelpie.consumer.effects import BrokerNode, Effects, Problem, ProblemKind
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.partition_state import FetchState
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import Failed
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.questions.question import listed


@dataclass(frozen=True, eq=False)
class LeaderRequests:
    requests: PendingRequests
    metadata: ConsumerMetadata
    assignment: SubscriptionState

    def due(self, effects: Effects, wanted: FetchState) -> dict[BrokerNode, list[TopicPartition]]:
        """The partitions in this state that can be asked for now, by the broker that leads them."""
        by_leader: dict[BrokerNode, list[TopicPartition]] = {}
        nodes = self.requests.nodes
        for partition in self.assignment.due(wanted, effects.now):
            node = nodes.broker(self.metadata.leader(partition).node_id)
            if node is None:
                self.metadata.outdated()
            elif nodes.is_unavailable(node, effects.now):
                self.retry(effects, [partition])  # Another broker may be the leader by now.
            else:
                by_leader.setdefault(node, []).append(partition)
        for partitions in by_leader.values():
            self.assignment.not_before(partitions, effects.now + self.requests.config.request_timeout_ms)
        return by_leader

    def retry(self, effects: Effects, partitions: list[TopicPartition]) -> str:
        """Ask again after the back-off, with new metadata. When that is, in words."""
        wait_ms = self.requests.config.retry_backoff_ms
        self.assignment.not_before(partitions, effects.now + wait_ms)
        self.metadata.outdated()
        return f"asked again in {wait_ms} ms"

    def unanswered(self, effects: Effects, partitions: list[TopicPartition]) -> Failed:
        return Failed(f"It is {self.retry(effects, partitions)}, with new metadata.")

    def forbidden(self, effects: Effects, partitions: list[TopicPartition]) -> str:
        """The broker does not let the consumer read these."""
        wait_ms = self.requests.config.retry_backoff_ms
        self.assignment.not_before(partitions, effects.now + wait_ms)
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        text = f"{listed(partitions)} cannot be read: {describe(error)}. {info(error).meaning}"
        effects.fail(Problem(ProblemKind.NOT_AUTHORISED, text, error, tuple(partitions)))
        return f"{listed(partitions)} may not be read: the consumer gives up."
