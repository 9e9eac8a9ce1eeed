"""What a consumer did, step by step: asked what of whom, what came, how long it took, what follows from it.

Steps are data. Nothing here knows how they are shown. A consumer that asks the same again and again, and
always hears the same, has one step for it, which counts.
"""

from collections import deque
from dataclasses import dataclass, replace
from enum import StrEnum

from kelpie.model.time import Instant

MOST_KEPT = 2000
_SAME_WITHIN = 8


class What(StrEnum):
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


@dataclass(frozen=True, slots=True)
class Follows:
    """What an answer leads to."""

    text: str
    failed: bool = False
    """The consumer cannot go on by this answer: it asks again, or gives up."""
    needed: str = ""
    """Of a failure: what the answer would have to be."""


@dataclass(frozen=True, slots=True)
class Step:
    at: Instant
    what: What
    asked_of: str
    """Empty: nobody was asked; the consumer concluded it by itself."""
    request: str
    answer: str
    elapsed_ms: int
    follows: str
    failed: bool = False
    needed: str = ""
    times: int = 1
    """How often it came to the same."""
    last_at: Instant = 0

    def same_as(self, other: "Step") -> bool:
        """Asked the same of the same, and heard the same; what follows may be another time to wait."""
        mine = (self.what, self.asked_of, self.request, self.answer, self.failed)
        heard = (other.what, other.asked_of, other.request, other.answer, other.failed)
        return mine == heard and (bool(self.asked_of) or self.follows == other.follows)


class Journal:
    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=MOST_KEPT)

    def add(self, step: Step) -> None:
        for back in range(1, min(_SAME_WITHIN, len(self._steps)) + 1):
            before = self._steps[-back]
            if before.same_as(step):
                self._steps[-back] = replace(
                    before, times=before.times + 1, last_at=step.at, follows=step.follows
                )
                return
        self._steps.append(replace(step, last_at=step.at))

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self._steps)
