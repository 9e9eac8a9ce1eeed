"""DeleteTopics (api key 20): delete topics.

v0   the beginning
v1   response + throttle_time_ms
v2   no new field; the broker answers first and throttles after (KIP-219)
v3   no new field; TOPIC_DELETION_DISABLED may be answered
v4   flexible
v5   response + error_message (KIP-599)
v6   topics may be named by id (KIP-516): request + topics; request − topic_names; response + topic_id
"""

from __future__ import annotations

from kelpie.wire.schema import NO_UUID, Int16, Int32, Uuid, field, request, response, struct


@request(key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = field("6+", default=[], strict=True)
    topic_names: list[str] = field("0-5", default=[])
    timeout_ms: Int32


@struct
class DeleteTopicState:
    name: str | None = None
    topic_id: Uuid


@response(key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    responses: list[DeletableTopicResult]


@struct
class DeletableTopicResult:
    name: str | None = field(nullable="6+")
    topic_id: Uuid = field("6+", default=NO_UUID)
    error_code: Int16
    error_message: str | None = field("5+", default=None)
