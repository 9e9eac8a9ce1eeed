"""What goes wrong on connections, as the consumer's machine hears it; what it cannot mend, as callers do."""

from kelpie.client.client_errors import (
    ClientError,
    Closed,
    NotAuthenticated,
    TimedOut,
    TlsFailed,
    Unreadable,
    Unsupported,
)
from kelpie.consumer import Failure, FailureKind, Problem

_KINDS: tuple[tuple[type[ClientError], FailureKind], ...] = (
    (TimedOut, FailureKind.TIMED_OUT),
    (Closed, FailureKind.DISCONNECTED),
    (Unsupported, FailureKind.UNSUPPORTED),
    (Unreadable, FailureKind.UNREADABLE),
    (NotAuthenticated, FailureKind.REFUSED),
    (TlsFailed, FailureKind.REFUSED),
)


class ConsumerProblem(Exception):
    """What a consumer cannot mend by itself. `problem` says what kind it is."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


def failure_of(error: ClientError) -> Failure:
    kind = next((kind for cls, kind in _KINDS if isinstance(error, cls)), FailureKind.UNREACHABLE)
    return Failure(kind, error.reason)
