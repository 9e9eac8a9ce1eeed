"""What a member does when the coordinator refuses it, by request.

| error                            | JoinGroup               | SyncGroup               | Heartbeat           |
|----------------------------------|-------------------------|-------------------------|---------------------|
| 14 COORDINATOR_LOAD_IN_PROGRESS  | again, later            | again, later (a)        | (b)                 |
| 15, 16                           | find coordinator, again | find coordinator, again | find coordinator    |
| 22 ILLEGAL_GENERATION            | drop generation, again  | drop generation, again  | drop it, rejoin     |
| 25 UNKNOWN_MEMBER_ID             | drop member id, again   | drop member id, again   | drop it, rejoin     |
| 27 REBALANCE_IN_PROGRESS         | again, at once          | again, at once          | rejoin if STABLE    |
| 79 MEMBER_ID_REQUIRED            | take the id, at once    |                         |                     |
| 82 FENCED_INSTANCE_ID            | poll raises it, always  | the same                | the same            |
| 23, 24, 26, 30, 35, 81, others   | poll raises it          | poll raises it          | poll raises it      |

(a) Kafka 4's coordinator answers this while it loads. Java's client raises an error; this one joins again, as
    after JoinGroup.
(b) A coordinator that loads answers heartbeats with 0.
"""

from dataclasses import dataclass, replace
from enum import Enum

from kelpie.consumer.effects import ProblemKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.questions.join_group import Joined


class Retry(Enum):
    AT_ONCE = "at once"
    LATER = "after the back-off"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class GroupRefusal:
    error: int
    retry: Retry
    reason: str = "the coordinator refused it"
    """The reason that the next JoinGroup gives."""
    kind: ProblemKind = ProblemKind.UNEXPECTED
    rediscover: bool = False
    forget_generation: bool = False
    forget_member: bool = False
    fenced: bool = False
    adopt: str | None = None
    """The member id that the coordinator gave."""

    @property
    def meaning(self) -> str:
        return info(self.error).meaning

    def text(self, group_id: str) -> str:
        return f"Group {group_id} cannot be joined: {describe(self.error)}. {self.meaning}"


_E = ErrorCode
_KNOWN = {
    refusal.error: refusal
    for refusal in (
        GroupRefusal(_E.COORDINATOR_LOAD_IN_PROGRESS, Retry.LATER, "the coordinator was loading"),
        GroupRefusal(
            _E.COORDINATOR_NOT_AVAILABLE, Retry.LATER, "the coordinator was not available", rediscover=True
        ),
        GroupRefusal(_E.NOT_COORDINATOR, Retry.LATER, "the coordinator has changed", rediscover=True),
        GroupRefusal(_E.ILLEGAL_GENERATION, Retry.AT_ONCE, "the generation is over", forget_generation=True),
        GroupRefusal(
            _E.UNKNOWN_MEMBER_ID,
            Retry.AT_ONCE,
            "the coordinator does not know the member",
            forget_generation=True,
            forget_member=True,
        ),
        GroupRefusal(_E.REBALANCE_IN_PROGRESS, Retry.AT_ONCE, "group is already rebalancing"),
        GroupRefusal(_E.MEMBER_ID_REQUIRED, Retry.AT_ONCE, "need to re-join with the given member-id"),
        GroupRefusal(_E.FENCED_INSTANCE_ID, Retry.NEVER, kind=ProblemKind.FENCED, fenced=True),
        GroupRefusal(_E.GROUP_AUTHORIZATION_FAILED, Retry.NEVER, kind=ProblemKind.NOT_AUTHORISED),
        GroupRefusal(_E.INCONSISTENT_GROUP_PROTOCOL, Retry.NEVER, kind=ProblemKind.REFUSED),
        GroupRefusal(_E.INVALID_GROUP_ID, Retry.NEVER, kind=ProblemKind.REFUSED),
        GroupRefusal(_E.INVALID_SESSION_TIMEOUT, Retry.NEVER, kind=ProblemKind.REFUSED),
        GroupRefusal(_E.GROUP_MAX_SIZE_REACHED, Retry.NEVER, kind=ProblemKind.REFUSED),
        GroupRefusal(_E.UNSUPPORTED_VERSION, Retry.NEVER, kind=ProblemKind.UNSUPPORTED),
    )
}

OF_MEMBERSHIP: dict[int, GroupRefusal] = {
    error: _KNOWN[error]
    for error in (
        _E.ILLEGAL_GENERATION,
        _E.UNKNOWN_MEMBER_ID,
        _E.REBALANCE_IN_PROGRESS,
        _E.FENCED_INSTANCE_ID,
    )
}
"""Refusals that any request of a member may get."""


def of_join(joined: Joined) -> GroupRefusal:
    refusal = _of(joined.error)
    if joined.error == _E.MEMBER_ID_REQUIRED:
        return replace(refusal, adopt=joined.member_id)
    return refusal


def of_sync(error: int) -> GroupRefusal:
    return _of(error) if error != _E.MEMBER_ID_REQUIRED else GroupRefusal(error, Retry.NEVER)


def _of(error: int) -> GroupRefusal:
    return _KNOWN.get(error) or GroupRefusal(error, Retry.NEVER)
