"""FindCoordinator (api key 10): which broker coordinates a group, a transactional id or a share partition.

v0   called GroupCoordinator before Kafka 0.11
v1   transactions have coordinators too: request + key_type; response + throttle_time_ms, error_message
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   flexible
v4   many keys in one request (KIP-699): request + coordinator_keys; request − key; response +
     coordinators; response − error_code, error_message, node_id, host, port
v5   no new field; TRANSACTION_ABORTABLE may be answered (KIP-890)
v6   no new field; share partitions as key type 2 (KIP-932)
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct


@request(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    key: str = field("0-3", default="", strict=True)
    key_type: Int8 = field("1+", default=0, strict=True)
    coordinator_keys: list[str] = field("4+", default=[], strict=True)


@response(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("0-3", default=0)
    error_message: str | None = field("1-3", default="")
    node_id: Int32 = field("0-3", default=0)
    host: str = field("0-3", default="")
    port: Int32 = field("0-3", default=0)
    coordinators: list[Coordinator] = field("4+", default=[])


@struct
class Coordinator:
    key: str
    node_id: Int32
    host: str
    port: Int32
    error_code: Int16
    error_message: str | None = None
