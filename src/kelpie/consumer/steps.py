"""The steps of a consumer: which request it sent to which broker, the answer, its time, and the consequence.

Steps are data. Nothing here knows how they are shown. When a consumer repeats a request and gets the same
answer, there is one step for it, with a count.
"""

from collections import deque
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter

from kelpie.model.time import Instant

MOST_KEPT = 2000
_SAME_WITHIN = 8


class StepKind(StrEnum):
    METADATA = "learn of brokers and topics"
    LOOKUP = "find the coordinator"
    DESCRIBE = "ask about the group"
    JOIN = "join the group"
    SYNC = "take the assignment"
    HEARTBEAT = "send a heartbeat"
    LEAVE = "leave the group"
    ASSIGNMENT = "take on partitions"
    COMMITTED = "ask for committed offsets"
    RESET = "ask where to begin"
    VALIDATE = "check positions against the leader's epochs"
    POSITION = "take up the position"
    FETCH = "fetch records"
    COMMIT = "commit offsets"


NEEDED = {
    StepKind.METADATA: "every topic that is read, with a leader for each of its partitions",
    StepKind.LOOKUP: "a broker that leads the group's partition of __consumer_offsets, with its address",
    StepKind.JOIN: "a generation and a member id",
    StepKind.SYNC: "the partitions of this member",
    StepKind.HEARTBEAT: "0",
    StepKind.COMMITTED: "an offset, or −1 for none, for each partition",
    StepKind.RESET: "an offset for each partition",
    StepKind.VALIDATE: "where the epoch of the last record ends",
    StepKind.FETCH: "records, or none yet, from the position on",
    StepKind.COMMIT: "0 for each partition",
}
"""The answer that lets the consumer go on."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The consequence of an answer with which the consumer cannot go on: it retries, or gives up."""

    text: str


@dataclass(frozen=True, slots=True)
class ConsumerStep:
    at: Instant
    kind: StepKind
    asked_of: str
    """Empty: there was no request; the consumer decided by itself."""
    request: str
    answer: str
    elapsed_ms: int
    follows: str
    failed: bool = False
    needed: str = ""
    times: int = 1
    """How often it happened."""
    last_at: Instant = 0

    def same_as(self, other: "ConsumerStep") -> bool:
        """Whether request, broker and answer are the same; the time to wait may differ."""
        same = attrgetter("kind", "asked_of", "request", "answer", "failed")
        return same(self) == same(other) and (bool(self.asked_of) or self.follows == other.follows)


class StepHistory:
    def __init__(self) -> None:
        self._steps: deque[ConsumerStep] = deque(maxlen=MOST_KEPT)

    def add(self, step: ConsumerStep) -> None:
        for back in range(1, min(_SAME_WITHIN, len(self._steps)) + 1):
            before = self._steps[-back]
            if before.same_as(step):
                self._steps[-back] = replace(
                    before, times=before.times + 1, last_at=step.at, follows=step.follows
                )
                return
        self._steps.append(replace(step, last_at=step.at))

    @property
    def steps(self) -> tuple[ConsumerStep, ...]:
        return tuple(self._steps)
