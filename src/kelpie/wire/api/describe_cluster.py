"""DescribeCluster (api key 60): brokers and controller of a cluster.

v0   the beginning; flexible
v1   controllers can be asked (KIP-919): request + endpoint_type; response + endpoint_type
v2   fenced brokers can be asked for (KIP-1073): request + include_fenced_brokers; response + is_fenced
"""

from __future__ import annotations

from kelpie.wire.schema import Int8, Int16, Int32, field, request, response, struct


@request(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool
    endpoint_type: Int8 = field("1+", default=1, strict=True)
    include_fenced_brokers: bool = field("2+", default=False, strict=True)


@response(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: str
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = -2147483648


@struct
class DescribeClusterBroker:
    broker_id: Int32
    host: str
    port: Int32
    rack: str | None = None
    is_fenced: bool = field("2+", default=False)
