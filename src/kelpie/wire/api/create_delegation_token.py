"""CreateDelegationToken (api key 38): create a delegation token.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
v3   on behalf of others (KIP-373): request + owner_principal_type, owner_principal_name; response +
     token_requester_principal_type, token_requester_principal_name
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response
from kelpie.wire.structs import Principal


@request(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = field("3+", default="", strict=True)
    owner_principal_name: str | None = field("3+", default="", strict=True)
    renewers: list[Principal]
    max_lifetime_ms: Int64


@response(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: Int16
    principal_type: str
    principal_name: str
    token_requester_principal_type: str = field("3+", default="")
    token_requester_principal_name: str = field("3+", default="")
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: str
    hmac: bytes
    throttle_time_ms: Int32 = 0
