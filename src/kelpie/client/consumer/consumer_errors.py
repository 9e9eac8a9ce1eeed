"""Errors of connections for the consumer's machine, and errors of the machine for the application."""

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


class ConsumerError(Exception):
    """An error that a consumer cannot mend by itself. `problem` says of what kind it is."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


def failure_of(error: ClientError) -> Failure:
    kind = next((kind for cls, kind in _KINDS if isinstance(error, cls)), FailureKind.UNREACHABLE)
    return Failure(kind, error.reason)
