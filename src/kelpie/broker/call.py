"""One request on its way through a broker."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kelpie.wire.framing import RequestHeader


@dataclass(slots=True, eq=False)
class Call:
    """What was asked, by whom, and where the answer goes.

    Whoever finishes the request calls `answer` once: with the response, or with None where the protocol has
    no answer (a produce request with acks=0). `refuse` closes the connection instead, which is all that a
    broker can say to a request it does not understand.
    """

    header: RequestHeader
    message: Any
    client_host: str
    """As Kafka writes it: with a slash in front."""
    answer: Callable[[Any], None]
    refuse: Callable[[], None]
    listener: str = "PLAINTEXT"

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""
