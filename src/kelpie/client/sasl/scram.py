"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and none sends it.

    client  n,,n=user,r=nonce
    broker  r=nonce+its own,s=salt,i=iterations
    client  c=biws,r=both nonces,p=proof
    broker  v=signature: without it, whoever answered does not know the password, and is not the broker

Kafka does not normalise names and passwords (no SASLprep: ScramFormatter.normalize encodes them as they are),
so neither does this: a password that SASLprep would change could not log in otherwise. Delegation tokens log
in the same way, with their id and HMAC, and say so in an extension (KIP-48).
"""

import base64
import binascii
import hashlib
import hmac
import secrets

from kelpie.client.sasl.mechanism import Rejected

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_LEAST_ITERATIONS = 4096
_MOST_ITERATIONS = 10_000_000
"""More would be an attack on whoever logs in."""
_MOST_DIGITS = 12
_HEADER = "n,,"


class Scram:
    complaint = ""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        from_token: bool = False,
        nonce: str | None = None,
    ) -> None:
        self.name = mechanism
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if from_token else ""
        self._first = f"n={name},r={self._nonce}{extension}"
        self._signature = b""

    def begin(self) -> bytes:
        return (_HEADER + self._first).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        parts = challenge.decode("utf-8", "replace").split(",")
        said = {part[0]: part[2:] for part in parts if len(part) >= 2 and part[1] == "="}
        if "e" in said:
            raise Rejected(f"it says {said['e']!r}")
        if not self._signature:
            return self._prove(challenge, said)
        if not hmac.compare_digest(_decoded(said, "v"), self._signature):
            raise Rejected(
                "it cannot prove that it knows the password, so it is not the broker it claims to be"
            )
        return None

    def _prove(self, challenge: bytes, said: dict[str, str]) -> bytes:
        nonce, salt = said.get("r", ""), _decoded(said, "s")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise Rejected("its answer belongs to another login")
        count = said.get("i", "")[:_MOST_DIGITS]
        iterations = int(count) if count.isascii() and count.isdigit() else 0
        if not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            raise Rejected(
                f"it asks for {count or 'no number of'} iterations; {_LEAST_ITERATIONS} to "
                f"{_MOST_ITERATIONS} are acceptable"
            )
        final = f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"
        signed = b",".join((self._first.encode(), challenge, final.encode()))
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        client_signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _decoded(said: dict[str, str], key: str) -> bytes:
    try:
        decoded = base64.b64decode(said.get(key, ""), validate=True)
    except binascii.Error:
        decoded = b""
    if not decoded:
        raise Rejected(f"its answer lacks {key!r}: this is not SCRAM")
    return decoded
