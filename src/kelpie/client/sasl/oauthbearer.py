"""OAUTHBEARER (RFC 7628, KIP-255): a token that somebody else has given out.

A broker that does not like the token says why in JSON; the client must answer that with one byte before the
broker ends the exchange.
"""

import json
from collections.abc import Iterable

_GO_ON = b"\x01"


class OAuthBearer:
    name = "OAUTHBEARER"

    def __init__(self, token: str, extensions: Iterable[tuple[str, str]] = ()) -> None:
        parts = [f"auth=Bearer {token}", *(f"{key}={value}" for key, value in extensions)]
        self._message = "".join(["n,,\x01", *(f"{part}\x01" for part in parts), "\x01"]).encode()
        self.complaint = ""

    def begin(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        try:
            said = json.loads(challenge)
            self.complaint = ", ".join(f"{key}: {value}" for key, value in said.items())
        except (ValueError, AttributeError, RecursionError):
            self.complaint = "an answer that is not JSON"
        return _GO_ON
