"""PLAIN (RFC 4616): user name and password, as they are. Only sensible on an encrypted listener."""


class Plain:
    name = "PLAIN"
    complaint = ""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def begin(self) -> bytes:
        return self._message

    def answer(self, _challenge: bytes) -> bytes | None:
        return None  # The broker has nothing to say.
