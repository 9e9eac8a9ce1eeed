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

15 is the only way to hear that there is none: the offsets partition of the group has no leader, or the topic
is missing and being created. 16 is what others get from a broker that is the coordinator no longer; whoever
hears it, or 15, or loses the connection, calls `lost`.
"""

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Failure, Place, Problem, ProblemKind
from kelpie.consumer.steps import Follows, What
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.time import Instant
from kelpie.questions.find_coordinator import AskCoordinator, FoundCoordinator

NEEDED = "a broker that leads the group's partition of __consumer_offsets, with its address"


class Lookup:
    def __init__(self, desk: Desk, metadata: Metadata, group_id: str) -> None:
        config = desk.config
        self._desk = desk
        self._metadata = metadata
        self._group_id = group_id
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._token: int | None = None
        self.coordinator: Place | None = None
        """Where it is, if it is known."""

    def ready(self, turn: Turn) -> Place | None:
        """The coordinator, if it is known and can be reached. If not, what must be done for it is done."""
        nodes = self._desk.nodes
        if self.coordinator is not None:
            if not nodes.is_unavailable(self.coordinator, turn.now):
                return self.coordinator
            self.lost(turn)
        if self._desk.is_under_way(self._token) or not self._backoff.over(turn.now):
            return None
        node = nodes.least_loaded(turn.now)
        if node is not None:
            question = AskCoordinator(self._group_id)
            self._token = self._desk.ask(
                turn, What.LOOKUP, node, question, then=self._found, otherwise=self._not_found
            )
        return None

    def lost(self, turn: Turn, place: Place | None = None) -> None:
        """It is no coordinator, or cannot be reached. `place`: where that was heard; it may be old news."""
        if self.coordinator is not None and place in (None, self.coordinator):
            self.coordinator = None
            self._backoff.failed(turn.now)

    def deadline(self, now: Instant) -> Instant | None:
        """When to look again, for whoever needs the coordinator."""
        if self.coordinator is not None or self._desk.is_under_way(self._token):
            return None
        if not self._backoff.over(now):
            return self._backoff.until
        return self._desk.nodes.next_free(now)

    def _found(self, turn: Turn, found: FoundCoordinator) -> Follows:
        if found.error == ErrorCode.NONE:
            # The address stands in the answer; metadata may not have it yet.
            self.coordinator = Place(found.node_id, found.host, found.port, for_group=True)
            self._backoff.succeeded()
            return Follows(f"Broker {found.node_id} coordinates the group; it gets a connection of its own.")
        meaning = info(found.error).meaning
        wait_ms = self._backoff.failed(turn.now)
        if info(found.error).retriable:
            self._metadata.outdated()
            return Follows(f"{meaning} It is looked for again in {wait_ms} ms.", failed=True, needed=NEEDED)
        kind = ProblemKind.UNEXPECTED
        if found.error == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            kind = ProblemKind.NOT_AUTHORISED
        text = (
            f"The coordinator of group {self._group_id} cannot be found: {describe(found.error)}. {meaning}"
        )
        turn.fail(Problem(kind, text, found.error))
        return Follows(f"{meaning} The consumer gives up.", failed=True, needed=NEEDED)

    def _not_found(self, turn: Turn, failure: Failure) -> Follows:
        del failure
        self._metadata.outdated()
        wait_ms = self._backoff.failed(turn.now)
        return Follows(f"Another broker is asked, in {wait_ms} ms.", failed=True, needed=NEEDED)
