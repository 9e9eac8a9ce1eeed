"""A SASL mechanism, seen from the client, without input or output: bytes in, bytes out."""

from typing import Protocol


class Mechanism(Protocol):
    name: str
    complaint: str
    """Why the broker refuses, if the mechanism has words for it."""

    def begin(self) -> bytes:
        """What the client says first."""

    def answer(self, challenge: bytes) -> bytes | None:
        """What the client says to that; None when the exchange is over and the broker has proved its part.

        Raises Rejected.
        """


class Rejected(Exception):
    """The exchange cannot go on: the broker refuses, or is not who it should be."""
