"""ApiVersions: what this broker's release advertises, as far as the lab serves it."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.personas import Persona
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FEATURES = {"eligible.leader.replicas.version": 1, "transaction.version": 2}
"""What Kafka 4.3 calls these, of the features that the lab has: up to which level, and at which it is."""
NAMES_LEVEL_0 = 4


def handle(broker: Broker, call: Call, now: Instant) -> None:
    call.answer(advertised(broker.persona, call.version))


def advertised(persona: Persona, version: int = 0, error: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    features = FEATURES if persona.name == "4.3" else {}
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last or versions.first)
            for key, versions in sorted(persona.versions.items())
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in features.items()
            if version >= NAMES_LEVEL_0
        ],
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in features.items()
        ],
        finalized_features_epoch=0 if features else -1,
    )
