"""DescribeUserScramCredentials (api key 50): list SCRAM credentials.

v0   the only version; flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, request, response, struct


@request(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None


@struct
class UserName:
    name: str


@response(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResult]


@struct
class DescribeUserScramCredentialsResult:
    user: str
    error_code: Int16
    error_message: str | None = None
    credential_infos: list[CredentialInfo]


@struct
class CredentialInfo:
    mechanism: Int8
    iterations: Int32
