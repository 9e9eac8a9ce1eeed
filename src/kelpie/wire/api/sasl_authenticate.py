"""SaslAuthenticate (api key 36): one step of a SASL exchange.

v0   the beginning
v1   sessions have a limited life (KIP-368): response + session_lifetime_ms
v2   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int64, field, request, response


@request(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: bytes


@response(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: Int16
    error_message: str | None = None
    auth_bytes: bytes
    session_lifetime_ms: Int64 = field("1+", default=0)
