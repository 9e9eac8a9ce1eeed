"""RenewDelegationToken (api key 39): extend the life of a delegation token.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, request, response


@request(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest:
    hmac: bytes
    renew_period_ms: Int64


@response(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse:
    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = 0
