"""UpdateFeatures (api key 57): raise or lower cluster features.

v0   the beginning; flexible
v1   downgrades, and a dry run (KIP-584): request + upgrade_type, validate_only; request −
     allow_downgrade
v2   one answer for all features: response − results
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct


@request(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey]
    validate_only: bool = field("1+", default=False, strict=True)


@struct
class FeatureUpdateKey:
    feature: str
    max_version_level: Int16
    allow_downgrade: bool = field("0", default=False, strict=True)
    upgrade_type: Int8 = field("1+", default=1, strict=True)


@response(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    results: list[UpdatableFeatureResult] = field("0-1", default=[])


@struct
class UpdatableFeatureResult:
    feature: str
    error_code: Int16
    error_message: str | None = None
