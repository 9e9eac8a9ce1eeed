"""SaslHandshake (api key 17): choose a SASL mechanism.

v0   the beginning
v1   no new field; the exchange goes on in SaslAuthenticate requests instead of bare frames
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, request, response


@request(key=17, versions="0-1")
class SaslHandshakeRequest:
    mechanism: str


@response(key=17, versions="0-1")
class SaslHandshakeResponse:
    error_code: Int16
    mechanisms: list[str]
