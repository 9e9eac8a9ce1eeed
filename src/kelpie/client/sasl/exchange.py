"""The conversation in which a mechanism runs.

SaslHandshake names the mechanism. With version 1 (Kafka 1.0) each step is a SaslAuthenticate request, whose
answer can carry a reason; with version 0 steps are bare frames, and a broker that refuses just closes the
connection.
"""

import asyncio

from kelpie.client.background import in_background
from kelpie.client.client_errors import BadSettings, Closed, NotAuthenticated, Unsupported
from kelpie.client.connection import Connection
from kelpie.client.memory import Memory
from kelpie.client.sasl.mechanism import Mechanism, Rejected
from kelpie.client.sasl.oauthbearer import OAuthBearer
from kelpie.client.sasl.plain import Plain
from kelpie.client.sasl.scram import Scram
from kelpie.client.sasl.tokens import token_from
from kelpie.client.security import MECHANISMS, Sasl, Secret, TokenSource
from kelpie.errors import ErrorCode, describe
from kelpie.wire.api.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kelpie.wire.api.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_MOST_STEPS = 8
_LONGEST = 500
"""Of what a broker says about a login."""
_SESSION_SHARE = 0.85
"""How much of a session is used before a new one is opened, as in the Java client."""


async def authenticate(connection: Connection, memory: Memory) -> None:
    """Raises ClientError. Does nothing where the listener's protocol is without SASL."""
    security = connection.settings.security
    if not security.protocol.authenticated:
        return
    if security.sasl is None:
        raise BadSettings(f"security.protocol is {security.protocol.value}, and no SASL mechanism is set.")
    mechanism = await _mechanism(security.sasl, memory, connection.settings.request_timeout_s)
    bare = await _handshake(connection, mechanism.name)
    challenge = await _step(connection, mechanism, mechanism.begin(), bare=bare)
    for _ in range(_MOST_STEPS):
        try:
            # Deriving a key takes thousands of rounds of a hash: not on the loop.
            reply = await in_background(lambda said=challenge: mechanism.answer(said))  # type: ignore[misc]
        except Rejected as error:
            raise _refused(connection, mechanism, str(error)) from None
        if reply is None:
            return
        challenge = await _step(connection, mechanism, reply, bare=bare)
    raise _refused(connection, mechanism, "the exchange does not come to an end")


async def _mechanism(sasl: Sasl, memory: Memory, limit_s: float) -> Mechanism:
    password = (sasl.password or Secret("")).reveal()
    match sasl.mechanism:
        case "PLAIN":
            return Plain(sasl.username, password)
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":
            return Scram(sasl.mechanism, sasl.username, password, from_token=sasl.from_token)
        case "OAUTHBEARER":
            source = sasl.token or TokenSource()
            return OAuthBearer(await token_from(source, memory, limit_s), source.extensions)
        case other:
            raise BadSettings(f"sasl.mechanism {other} is not spoken here; {', '.join(MECHANISMS)} are.")


async def _handshake(connection: Connection, mechanism: str) -> bool:
    """Whether the steps that follow are bare frames."""
    address = connection.address
    try:
        version = connection.versions.pick(SaslHandshakeRequest)
    except Unsupported:
        raise NotAuthenticated(
            f"{address} knows no SASL that Kelpie speaks: its release is too old.", address
        ) from None
    response: SaslHandshakeResponse = await connection.ask(SaslHandshakeRequest(mechanism=mechanism), version)
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        raise NotAuthenticated(
            f"{address} does not offer {mechanism}; it offers {offered}. Set sasl.mechanism to one of these.",
            address,
        )
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise NotAuthenticated(
            f"{address} is a listener without SASL. Set security.protocol to "
            f"{'SSL' if connection.settings.security.protocol.encrypted else 'PLAINTEXT'}, or take the "
            "port of the listener with SASL.",
            address,
        )
    if response.error_code:
        raise NotAuthenticated(f"{address} refuses a login: {describe(response.error_code)}.", address)
    return version == 0


async def _step(connection: Connection, mechanism: Mechanism, payload: bytes, *, bare: bool) -> bytes:
    if bare:
        try:
            return await connection.ask_bare(payload)
        except Closed:
            raise _refused(connection, mechanism, "it closed the connection") from None
    response: SaslAuthenticateResponse = await connection.ask(SaslAuthenticateRequest(auth_bytes=payload))
    if response.error_code:
        said = response.error_message or describe(response.error_code)
        raise _refused(connection, mechanism, mechanism.complaint or said)
    if response.session_lifetime_ms > 0:
        now = asyncio.get_running_loop().time()
        connection.session_ends = now + response.session_lifetime_ms / 1000 * _SESSION_SHARE
    return response.auth_bytes


def _refused(connection: Connection, mechanism: Mechanism, why: str) -> NotAuthenticated:
    sasl = connection.settings.security.sasl
    who = f" of {sasl.username!r}" if sasl is not None and sasl.username else ""
    why = why if len(why) <= _LONGEST else f"{why[:_LONGEST]}…"
    return NotAuthenticated(
        f"{connection.address} refused the login{who} by {mechanism.name}: {why.rstrip('.')}.",
        connection.address,
    )
