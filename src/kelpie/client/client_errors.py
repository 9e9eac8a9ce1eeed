"""What can go wrong between Kelpie and a cluster. One base class; each failure says in plain words what
happened.

`reason` names the address and what to try. It never holds a password or a token.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kelpie.model.kelpie_error import KelpieError
from kelpie.observations import Trouble

if TYPE_CHECKING:
    from kelpie.client.address import Address

_LONGEST = 300
"""Of a text that comes from elsewhere."""


class ClientError(KelpieError):
    """A question was not answered. `reason` says which, by whom, and what to do about it.

    `causes` are the failures of single brokers that this one sums up; else itself.
    """

    usual_trouble = Trouble.OTHER

    def __init__(
        self,
        reason: str,
        address: "Address | None" = None,
        causes: "Sequence[ClientError] | None" = None,
        trouble: Trouble | None = None,
    ) -> None:
        super().__init__(reason)
        self.trouble = trouble or self.usual_trouble
        self.reason = reason
        self.address = address
        self._causes = None if causes is None else tuple(causes)

    @property
    def causes(self) -> "tuple[ClientError, ...]":
        """Where it is the error itself, it is not kept: that would be a cycle. Its traceback holds functions
        and their rows, and all of that would wait for the garbage collector.
        """
        return (self,) if self._causes is None else self._causes


class BadSettings(ClientError):
    """The settings contradict themselves, or name a file that is not there."""


class Unreachable(ClientError):
    """No connection came about: refused, no such host, no route, or no reply in time."""

    usual_trouble = Trouble.NO_ANSWER


class TimedOut(ClientError):
    """The connection stands, and the answer did not come in time."""

    usual_trouble = Trouble.SLOW


class Closed(ClientError):
    """The connection ended before the answer came."""


class TlsFailed(ClientError):
    """The two sides could not agree on an encrypted connection."""

    usual_trouble = Trouble.TLS


class NotAuthenticated(ClientError):
    """The broker did not accept who we say we are, or could not prove who it is."""

    usual_trouble = Trouble.LOGIN


class Throttled(ClientError):
    """A quota holds this client back: the broker answered with nothing, and does not read on for a while."""

    usual_trouble = Trouble.SLOW


class Unsupported(ClientError):
    """The broker does not speak a version of the request that Kelpie could use."""


class Unreadable(ClientError):
    """What came back is not an answer of Kafka's."""


class NotKafka(Unreadable):
    """Something else than a broker listens there."""


class NoBroker(ClientError):
    """None of several brokers could be asked."""


def unforeseen(error: Exception, address: "Address", when: str) -> Unreadable:
    """What Kelpie did not expect of a broker. One broker's answer must not end the work on all others."""
    said = f"{type(error).__name__}: {error}"[:_LONGEST]
    return Unreadable(f"What {address} answered {when} makes no sense to Kelpie ({said}).", address)
