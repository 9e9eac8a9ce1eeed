"""DescribeDelegationToken (api key 41): list delegation tokens.

v0   the beginning
v1   no new field; the broker answers first and throttles after (KIP-219)
v2   flexible
v3   response + token_requester_principal_type, token_requester_principal_name (KIP-373)
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response, struct
from kelpie.wire.structs import Principal


@request(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest:
    owners: list[Principal] | None


@response(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: Int16
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: Int32 = 0


@struct
class DescribedDelegationToken:
    principal_type: str
    principal_name: str
    token_requester_principal_type: str = field("3+", default="")
    token_requester_principal_name: str = field("3+", default="")
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: str
    hmac: bytes
    renewers: list[Principal]
