"""AlterUserScramCredentials (api key 51): change SCRAM credentials.

v0   the only version; flexible
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, request, response, struct


@request(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


@struct
class ScramCredentialDeletion:
    name: str
    mechanism: Int8


@struct
class ScramCredentialUpsertion:
    name: str
    mechanism: Int8
    iterations: Int32
    salt: bytes
    salted_password: bytes


@response(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult]


@struct
class AlterUserScramCredentialsResult:
    user: str
    error_code: Int16
    error_message: str | None = None
