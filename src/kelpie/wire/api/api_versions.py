"""ApiVersions (api key 18): which APIs and versions a broker speaks.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   features (KIP-584); the answer's header never becomes flexible, so that an old client can read it:
     request + client_software_name, client_software_version; response + supported_features,
     finalized_features_epoch, finalized_features, zk_migration_ready; flexible
v4   no new field; features whose lowest version is 0 are listed too
"""

from __future__ import annotations

from kelpie.wire.schema import Int16, Int32, Int64, field, request, response, struct


@request(key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: str = field("3+", default="")
    client_software_version: str = field("3+", default="")


@response(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: Int16
    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = field("1+", default=0)
    supported_features: list[SupportedFeatureKey] = field("3+", tag=0, default=[])
    finalized_features_epoch: Int64 = field("3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = field("3+", tag=2, default=[])
    zk_migration_ready: bool = field("3+", tag=3, default=False)


@struct
class ApiVersion:
    api_key: Int16
    min_version: Int16
    max_version: Int16


@struct
class SupportedFeatureKey:
    name: str
    min_version: Int16
    max_version: Int16


@struct
class FinalizedFeatureKey:
    name: str
    max_version_level: Int16
    min_version_level: Int16
