"""ApiVersions: what this broker's release advertises, as far as the lab serves it."""

from typing import TYPE_CHECKING

from kelpie.broker.call import Call
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.api_versions import ApiVersion, ApiVersionsResponse

if TYPE_CHECKING:
    from kelpie.broker.broker import Broker
    from kelpie.broker.personas import Persona


def handle(broker: "Broker", call: Call, now: Instant) -> None:
    call.answer(advertised(broker.persona))


def advertised(persona: "Persona", error: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last or versions.first)
            for key, versions in sorted(persona.versions.items())
        ],
        finalized_features_epoch=0 if persona.name == "4.3" else -1,
    )
