"""The consumer's metadata: topics and their leaders, and when the consumer asks for them again.

It asks when it starts, when a topic is added, when a part of the consumer has found the metadata to be wrong
(`outdated`), and when metadata.max.age.ms is over; one request at a time, and never sooner than
retry.backoff.ms after an answer. While a topic or a leader is missing, it asks less and less often.

Of two answers about a partition the one with the higher leader epoch counts, whichever came first: a broker
that lags behind must not bring back a former leader (KIP-320). A topic with another id is another topic.
"""

from dataclasses import dataclass

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.effects import Effects, Failure, Problem, ProblemKind
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.metadata import AskMetadata, ClusterFacts, PartitionFacts, TopicFacts

_FATAL: dict[int, ProblemKind] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    ErrorCode.INVALID_TOPIC_EXCEPTION: ProblemKind.REFUSED,
}


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition and its epoch, by the newest answer."""

    node_id: int | None
    epoch: int | None


NO_LEADER = Leader(None, None)


class ConsumerMetadata:
    def __init__(self, requests: PendingRequests, topics: frozenset[str]) -> None:
        config = requests.config
        self._requests = requests
        self._subscribed = topics
        self._followed: frozenset[str] = frozenset()
        self._may_create = config.allow_auto_create_topics
        self._max_age_ms = config.metadata_max_age_ms
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._wanted = True
        self._token: int | None = None
        self._asked: frozenset[str] = frozenset()
        self._fresh_until: Instant = 0
        self.answers = 0
        """How many answers have come."""
        self.topics: dict[str, TopicFacts] = {}
        self._epochs: dict[TopicPartition, int] = {}

    # For the other parts of the consumer.

    def leader(self, partition: TopicPartition) -> Leader:
        topic = self.topics.get(partition.topic)
        facts = topic.partitions.get(partition.partition) if topic is not None else None
        return NO_LEADER if facts is None else Leader(facts.leader, facts.epoch)

    def partition_counts(self, topics: frozenset[str]) -> dict[str, int]:
        return {name: len(self.topics[name].partitions) for name in topics if name in self.topics}

    def knows(self, topics: frozenset[str]) -> bool:
        """Whether an answer about all of these topics has come, even if they do not exist."""
        return topics <= self.topics.keys()

    def name_of(self, topic_id: bytes) -> str | None:
        names = (name for name, facts in self.topics.items() if facts.topic_id == topic_id)
        return next(names, None)

    def outdated(self) -> None:
        self._wanted = True

    def follow(self, others: frozenset[str]) -> None:
        """Also ask for topics of the group that this member does not read: the group's leader needs them."""
        self._followed = others - self._subscribed
        if not self.knows(self._followed):
            self._wanted = True

    def seen(self, partition: TopicPartition, epoch: int | None) -> None:
        """A leader epoch from another answer. A newer one means that the metadata is out of date."""
        if epoch is not None and epoch > self._epochs.get(partition, epoch):
            self._epochs[partition] = epoch
            self._wanted = True

    # Asking.

    def advance(self, effects: Effects) -> None:
        due = self._wanted or effects.now >= self._fresh_until
        if not due or self._requests.is_pending(self._token) or not self._backoff.over(effects.now):
            return
        node = self._requests.nodes.least_loaded(effects.now)
        if node is None:
            return
        self._wanted = False
        self._asked = self._subscribed | self._followed
        question = AskMetadata(tuple(sorted(self._asked)), self._may_create)
        self._token = self._requests.send(
            effects, StepKind.METADATA, node, question, on_answer=self._on_answer, on_failure=self._on_failure
        )

    def deadline(self, now: Instant) -> Instant | None:
        if self._requests.is_pending(self._token):
            return None
        if not self._wanted:
            return self._fresh_until
        if not self._backoff.over(now):
            return self._backoff.until
        return self._requests.nodes.next_free(now)

    def _on_answer(self, effects: Effects, facts: ClusterFacts) -> str | Failed:
        if facts.error:
            return self._retry(effects, f"The broker could not tell: {info(facts.error).meaning}")
        self._requests.nodes.update(facts.brokers)
        self.topics = {name: self._newest(name, topic) for name, topic in facts.topics.items()}
        self.answers += 1
        self._wanted = False  # This answer is newer than any complaint about the metadata.
        self._fresh_until = effects.now + self._max_age_ms
        self._raise_what_is_fatal(effects)
        lacking = self._lacking()
        if lacking:
            return self._retry(effects, f"{lacking}.")
        self._backoff.succeeded()
        self._backoff.until = effects.now + self._requests.config.retry_backoff_ms  # Never more often.
        if self._asked != self._subscribed | self._followed:
            self._wanted = True  # More topics were added since the request.
        return "The brokers are known, and who leads which partition."

    def _on_failure(self, effects: Effects, failure: Failure) -> str | Failed:
        del failure
        self._wanted = True
        wait_ms = self._backoff.failed(effects.now)
        return Failed(f"Another broker is asked, in {wait_ms} ms.")

    def _retry(self, effects: Effects, why: str) -> str | Failed:
        self._wanted = True
        wait_ms = self._backoff.failed(effects.now)
        return Failed(f"{why} It is asked again in {wait_ms} ms.")

    def _newest(self, name: str, topic: TopicFacts) -> TopicFacts:
        before = self.topics.get(name)
        if before is not None and before.topic_id != topic.topic_id:
            before = None
            for partition in [known for known in self._epochs if known.topic == name]:
                del self._epochs[partition]
        partitions: dict[int, PartitionFacts] = {}
        for number, facts in topic.partitions.items():
            partition = TopicPartition(name, number)
            partitions[number] = facts
            if facts.epoch is None:
                continue
            if facts.epoch >= self._epochs.get(partition, facts.epoch):
                self._epochs[partition] = facts.epoch
            elif before is not None and number in before.partitions:
                partitions[number] = before.partitions[number]
        return TopicFacts(topic.error, topic.topic_id, partitions)

    def _raise_what_is_fatal(self, effects: Effects) -> None:
        for name, topic in sorted(self.topics.items()):
            kind = _FATAL.get(topic.error)
            if kind is not None and name in self._subscribed:
                text = f"Topic {name} cannot be read: {describe(topic.error)}. {info(topic.error).meaning}"
                effects.fail(Problem(kind, text, topic.error))

    def _lacking(self) -> str:
        """The topics and leaders that are missing, in words; empty when none is."""
        absent = [name for name, topic in sorted(self.topics.items()) if topic.error]
        if absent:
            return f"{', '.join(absent)}: {describe(self.topics[absent[0]].error)}"
        leaderless = [
            str(TopicPartition(name, number))
            for name, topic in sorted(self.topics.items())
            for number, facts in sorted(topic.partitions.items())
            if facts.leader is None
        ]
        if not leaderless:
            return ""
        more = f" and {len(leaderless) - 5} more" if len(leaderless) > 5 else ""
        return f"{', '.join(leaderless[:5])}{more} without a leader"
