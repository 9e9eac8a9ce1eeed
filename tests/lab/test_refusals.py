"""Refusals of every API in every version: they can be sent, and they carry the error."""

from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.broker.refusals import refusal
from kelpie.errors import ErrorCode
from kelpie.lab.metrics import errors_in
from kelpie.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.join_group import JoinGroupRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopics
from kelpie.wire.apis import NAMES, api
from kelpie.wire.compiler.layout import ArrayOf, Blob, Kind, Layout, StructOf, Text, layout, part
from kelpie.wire.framing import RequestHeader, decode_response, encode_response
from kelpie.wire.schema import Fixed
from tests.wire.messages import several_messages, versions_of

CODES = [code for code in ErrorCode if code]


EVERY = [(key, version) for key in NAMES for version in versions_of(key)]
IDS = [f"{NAMES[key]}-v{version}" for key, version in EVERY]


@pytest.mark.parametrize(("key", "version"), EVERY, ids=IDS)
@given(data=st.data(), first=st.integers(0, len(CODES) - 1))
@settings(max_examples=settings().max_examples // 50)
def test_any_request_can_be_refused(key: int, version: int, data: st.DataObject, first: int) -> None:
    """Whatever a client asks, the answer can be encoded, and says no other error than the one wanted."""
    drawn = data.draw(several_messages(api(key).request, [version], count=5))
    for (_, request), code in zip(drawn, islice(cycle(CODES), first, None), strict=False):
        response = refusal(RequestHeader(key, version, 5, None), request, code)
        encoded = encode_response(key, version, 5, response)
        assert decode_response(key, version, encoded[4:]) == (5, response)
        assert set(errors_in(response)) <= {code}


@pytest.mark.parametrize(("key", "version"), EVERY, ids=IDS)
def test_a_refusal_carries_its_error(key: int, version: int) -> None:
    """A request that asks for something hears the error, in every API and version."""
    request = _full(layout(api(key).request, version))
    response = refusal(RequestHeader(key, version, 1, "c"), request, ErrorCode.NOT_CONTROLLER)
    assert set(errors_in(response)) == {ErrorCode.NOT_CONTROLLER}


def _full(at: Layout) -> Any:
    """A request with two of everything."""
    return at.cls(**{own.name: _value(own.kind, at) for own in (*at.fields, *at.tagged)})


def _value(kind: Kind, at: Layout) -> Any:
    match kind:
        case Fixed(code="?"):
            return True
        case Fixed(code="16s"):
            return bytes(range(16))
        case Fixed():
            return 3
        case Text():
            return "name"
        case Blob():
            return b"bytes"
        case ArrayOf():
            return [_value(kind.element, at), _value(kind.element, at)]
        case StructOf():
            return _full(part(kind.cls, at.version, at.flexible))


def _refused(key: int, version: int, request: Any, code: ErrorCode) -> Any:
    return refusal(RequestHeader(key, version, 1, "c"), request, code)


def test_a_coordinator_that_is_not_there_has_no_address() -> None:
    """As Kafka 0.9 says it: error_code=15, coordinator={node_id=-1, host=, port=-1}."""
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    old = _refused(10, 0, FindCoordinatorRequest(key="g"), code)
    assert (old.error_code, old.node_id, old.host, old.port) == (15, -1, "", -1)
    new = _refused(10, 4, FindCoordinatorRequest(coordinator_keys=["a", "b"]), code)
    assert [(one.key, one.error_code, one.node_id) for one in new.coordinators] == [
        ("a", 15, -1),
        ("b", 15, -1),
    ]


def _fetch(topics: list[FetchTopic]) -> FetchRequest:
    return FetchRequest(max_wait_ms=1, min_bytes=1, session_id=7, session_epoch=3, topics=topics)


def test_a_fetch_is_refused_partition_by_partition() -> None:
    """A client that sees an error at the top looks no further, and would not ask for the new leader."""
    partition = FetchPartition(partition=4, fetch_offset=0, partition_max_bytes=1)
    request = _fetch([FetchTopic(topic="t", partitions=[partition])])
    response = _refused(1, 11, request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (response.error_code, response.session_id) == (0, 0)
    (topic,) = response.responses
    assert [(own.partition_index, own.error_code, own.records) for own in topic.partitions] == [(4, 6, b"")]


def test_errors_of_a_fetch_session_are_at_the_top() -> None:
    """They are about the session, and so is an error for a fetch that names no partition."""
    partition = FetchPartition(partition=4, fetch_offset=0, partition_max_bytes=1)
    request = _fetch([FetchTopic(topic="t", partitions=[partition])])
    response = _refused(1, 11, request, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert (response.error_code, response.responses) == (70, [])
    assert _refused(1, 11, _fetch([]), ErrorCode.NOT_LEADER_OR_FOLLOWER).error_code == 6


def test_metadata_is_refused_topic_by_topic() -> None:
    """The error of the whole answer, since version 13, is for rebootstrapping."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    response = _refused(3, 13, request, ErrorCode.LEADER_NOT_AVAILABLE)
    assert response.error_code == 0
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("t", 5)]
    whole = _refused(3, 13, request, ErrorCode.REBOOTSTRAP_REQUIRED)
    assert (whole.error_code, whole.topics) == (129, [])


def test_a_member_hears_its_own_id() -> None:
    """A join that is refused echoes the member, so that it may come again."""
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="m-1", protocol_type="consumer", protocols=[]
    )
    response = _refused(11, 5, request, ErrorCode.REBALANCE_IN_PROGRESS)
    assert (response.error_code, response.member_id, response.generation_id) == (27, "m-1", -1)


def test_old_clients_can_read_the_metadata_of_an_offset() -> None:
    """Null was not allowed there once."""
    asked = OffsetFetchRequestTopics(name="t", partition_indexes=[1])
    response = _refused(9, 1, OffsetFetchRequest(group_id="g", topics=[asked]), ErrorCode.NOT_COORDINATOR)
    (partition,) = response.topics[0].partitions
    assert (partition.partition_index, partition.committed_offset, partition.metadata) == (1, -1, "")
