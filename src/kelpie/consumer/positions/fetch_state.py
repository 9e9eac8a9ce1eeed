"""The state of one partition that the consumer reads, as in Kafka's SubscriptionState.

INITIALIZING       just assigned: its first offset is not known
FETCHING           it has a position, and is fetched from there
AWAIT_RESET        the reset policy will give the position
AWAIT_VALIDATION   it has a position, but the leader has changed: the new log may lack records that were read

| from             | may become                                       | has a position | is fetched |
|------------------|--------------------------------------------------|----------------|------------|
| INITIALIZING     | FETCHING, AWAIT_RESET, AWAIT_VALIDATION          | no             | no         |
| FETCHING         | FETCHING, AWAIT_RESET, AWAIT_VALIDATION          | yes            | yes        |
| AWAIT_RESET      | FETCHING, AWAIT_RESET                            | no             | no         |
| AWAIT_VALIDATION | FETCHING, AWAIT_RESET, AWAIT_VALIDATION          | yes            | no         |

No partition returns to INITIALIZING. A transition that is not in the table does not happen. That is no error:
an answer may come late.
"""

from enum import Enum


class FetchState(Enum):
    INITIALIZING = "INITIALIZING"
    FETCHING = "FETCHING"
    AWAIT_RESET = "AWAIT_RESET"
    AWAIT_VALIDATION = "AWAIT_VALIDATION"

    @property
    def has_position(self) -> bool:
        return self in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)


MAY_BECOME: dict[FetchState, frozenset[FetchState]] = {
    FetchState.INITIALIZING: frozenset(
        {FetchState.FETCHING, FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION}
    ),
    FetchState.FETCHING: frozenset(
        {FetchState.FETCHING, FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION}
    ),
    FetchState.AWAIT_RESET: frozenset({FetchState.FETCHING, FetchState.AWAIT_RESET}),
    FetchState.AWAIT_VALIDATION: frozenset(
        {FetchState.FETCHING, FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION}
    ),
}
