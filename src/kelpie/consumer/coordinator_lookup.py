"""Finding the coordinator: the loop of ensureCoordinatorReady.

    known, and can be reached      ready
    known, but just failed         forget it; after the back-off, look again
    unknown                        FindCoordinator to the least loaded node, one at a time

| answer                                  | what follows                                                    |
|-----------------------------------------|-----------------------------------------------------------------|
| a broker                                | it gets a connection of its own                                 |
| 15 COORDINATOR_NOT_AVAILABLE, and every | back off, ask for metadata, look again, of another broker maybe |
| other retriable error                   |                                                                 |
| 30 GROUP_AUTHORIZATION_FAILED           | poll raises it                                                  |
| any other error                         | poll raises it                                                  |
| no answer                               | back off, look again, at another broker                         |

15 means that there is no coordinator: the offsets partition of the group has no leader, or the topic is being
created. Other requests get 16 from a broker that is no longer the coordinator. A part that gets 15 or 16, or
loses the connection, calls `lost`.
"""

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.effects import BrokerNode, Effects, Failure, Problem, ProblemKind
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.time import Instant
from kelpie.questions.find_coordinator import AskCoordinator, FoundCoordinator


class CoordinatorLookup:
    def __init__(self, requests: PendingRequests, metadata: ConsumerMetadata, group_id: str) -> None:
        config = requests.config
        self._requests = requests
        self._metadata = metadata
        self._group_id = group_id
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._token: int | None = None
        self.coordinator: BrokerNode | None = None
        """None: not known."""

    def ready(self, effects: Effects) -> BrokerNode | None:
        """The coordinator, if it is known and can be reached. If not, the lookup goes on."""
        nodes = self._requests.nodes
        if self.coordinator is not None:
            if not nodes.is_unavailable(self.coordinator, effects.now):
                return self.coordinator
            self.lost(effects)
        if self._requests.is_pending(self._token) or not self._backoff.over(effects.now):
            return None
        node = nodes.least_loaded(effects.now)
        if node is not None:
            question = AskCoordinator(self._group_id)
            self._token = self._requests.send(
                effects,
                StepKind.LOOKUP,
                node,
                question,
                on_answer=self._on_answer,
                on_failure=self._on_failure,
            )
        return None

    def lost(self, effects: Effects, node: BrokerNode | None = None) -> None:
        """`node` is not the coordinator, or cannot be reached. Ignored if it is not the known coordinator."""
        if self.coordinator is not None and node in (None, self.coordinator):
            self.coordinator = None
            self._backoff.failed(effects.now)

    def deadline(self, now: Instant) -> Instant | None:
        """When to look again, if a part needs the coordinator."""
        if self.coordinator is not None or self._requests.is_pending(self._token):
            return None
        if not self._backoff.over(now):
            return self._backoff.until
        return self._requests.nodes.next_free(now)

    def _on_answer(self, effects: Effects, answer: FoundCoordinator) -> str | Failed:
        if answer.error == ErrorCode.NONE:
            # The address is in the answer; metadata may not have it yet.
            self.coordinator = BrokerNode(answer.node_id, answer.host, answer.port, for_group=True)
            self._backoff.succeeded()
            return f"Broker {answer.node_id} coordinates the group; it gets a connection of its own."
        meaning = info(answer.error).meaning
        wait_ms = self._backoff.failed(effects.now)
        if info(answer.error).retriable:
            self._metadata.outdated()
            return Failed(f"{meaning} It is looked for again in {wait_ms} ms.")
        kind = ProblemKind.UNEXPECTED
        if answer.error == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            kind = ProblemKind.NOT_AUTHORISED
        text = (
            f"The coordinator of group {self._group_id} cannot be found: {describe(answer.error)}. {meaning}"
        )
        effects.fail(Problem(kind, text, answer.error))
        return Failed(f"{meaning} The consumer gives up.")

    def _on_failure(self, effects: Effects, failure: Failure) -> str | Failed:
        del failure
        self._metadata.outdated()
        wait_ms = self._backoff.failed(effects.now)
        return Failed(f"Another broker is asked, in {wait_ms} ms.")
