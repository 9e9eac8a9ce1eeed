"""The answer to a request that is refused as a whole: its API's response, with the error where it belongs.

An error goes to every place that the response has for one: the top, and each topic, partition, group or
member that was asked for, which is echoed. Everything else says nothing: no offset, no broker, no records.
That is what Kafka's getErrorResponse does, request by request; here most of it follows from the schemas.

The exceptions: Fetch and Metadata have an error for the whole answer that is about the session or the client
itself. Clients that find another code there do not look at the partitions, so those codes stay below.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.wire.api.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kelpie.wire.api.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kelpie.wire.api.describe_log_dirs import DescribeLogDirsRequest
from kelpie.wire.apis import api
from kelpie.wire.compiler.layout import ArrayOf, Blob, FieldAt, Layout, StructOf, Text, layout, part
from kelpie.wire.framing import RequestHeader
from kelpie.wire.schema import NO_UUID, Fixed
from kelpie.wire.structs import NamedTopicPartitions

FETCH = 1
METADATA = 3

_OF_THE_WHOLE: dict[int, frozenset[int]] = {
    FETCH: frozenset(
        {
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        }
    ),
    METADATA: frozenset({ErrorCode.REBOOTSTRAP_REQUIRED}),
}

_ASKED_IN: dict[str, tuple[str, ...]] = {
    "coordinators": ("coordinator_keys",),
    "entity": ("entity",),
    "filter_results": ("filters",),
    "groups": ("groups", "group_ids"),
    "partition_responses": ("partition_data",),
    "partition_result": ("partitions",),
    "partitions": ("partitions", "partition_indexes"),
    "replica_election_results": ("topic_partitions",),
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "results": ("groups_names", "topics", "resources", "users", "creations", "feature_updates"),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "transaction_states": ("transactional_ids",),
}
"""Lists of a response whose requests call them otherwise."""

_PARTITION = ("partition_index", "partition", "index", "partition_id")
_TOPIC = ("name", "topic", "topic_name", "path")
_ECHOED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("index", "partition", "partition_id", "partition_index"), _PARTITION),
    **dict.fromkeys(("name", "topic", "topic_name"), _TOPIC),
    **{
        name: (name,)
        for name in (
            *("entity_name", "entity_type", "resource_name", "resource_type", "feature", "key", "topic_id"),
            *("group_id", "group_instance_id", "member_id", "transactional_id"),
        )
    },
    "user": ("name",),
}
"""What a response repeats of the request, and how the request may call it."""

_UNKNOWN = frozenset({"node_id", "port"})
"""Fields of FindCoordinator that are -1 in an error, whatever their default is."""


def refusal(header: RequestHeader, request: Any, code: int) -> Any:
    """The response to `request`, in its version, that says `code` and nothing else."""
    known = api(header.api_key)
    at = layout(known.response, header.api_version)
    reshape = _RESHAPED.get(type(request))
    response = _Refusal(at.version, code).of_struct(at, reshape(request) if reshape else request)
    whole = _OF_THE_WHOLE.get(header.api_key)
    if whole is not None and hasattr(response, "error_code"):
        below = response.responses if header.api_key == FETCH else response.topics
        if code in whole:
            below.clear()
        elif below:
            response.error_code = 0
    return response


@dataclass(frozen=True, slots=True)
class _Refusal:
    _version: int
    _code: int

    def of_struct(self, at: Layout, asked: Any) -> Any:
        """One struct of the response; `asked` is the part of the request that it answers."""
        values = {field.name: self._value(field, at, asked) for field in at.fields}
        return at.cls(**values)

    def _value(self, field: FieldAt, at: Layout, asked: Any) -> Any:
        if field.name.endswith("error_code"):
            return self._code
        if isinstance(field.kind, ArrayOf):
            return self._list(field, field.kind, at, asked)
        echo = _echo(field, asked)
        if field.name == "producer_id" and hasattr(asked, "transaction_result"):
            echo = asked.producer_id
        return _nothing(field) if echo is None else echo

    def _list(self, field: FieldAt, kind: ArrayOf, at: Layout, asked: Any) -> list[Any]:
        if not isinstance(kind.element, StructOf):
            return []
        inner = part(kind.element.cls, self._version, at.flexible)
        if not _carries_error(inner) and field.name != "entity":
            return []
        has_error = any(other.name == "error_code" for other in at.fields)
        if field.name == "results" and isinstance(asked, _AnyLogDir) and has_error:
            return []
        return [self.of_struct(inner, element) for element in _elements(field.name, asked)]


def _carries_error(at: Layout) -> bool:
    for field in at.fields:
        if field.name.endswith("error_code"):
            return True
        if isinstance(field.kind, ArrayOf) and isinstance(field.kind.element, StructOf):
            inner = part(field.kind.element.cls, at.version, at.flexible)
            if inner.cls is not at.cls and _carries_error(inner):
                return True
    return False


def _elements(name: str, asked: Any) -> Iterable[Any]:
    for called in (name, *_ASKED_IN.get(name, ())):
        elements = getattr(asked, called, None)
        if isinstance(elements, list) and elements:
            return elements
    return ()


def _echo(field: FieldAt, asked: Any) -> Any:
    names = _ECHOED.get(field.name)
    if names is None:
        return None
    if isinstance(asked, int):
        return asked if names is _PARTITION else None
    if isinstance(asked, str):
        return asked if isinstance(field.kind, Text) else None
    for name in names:
        if hasattr(asked, name):
            return getattr(asked, name)
    return None


def _nothing(field: FieldAt) -> Any:
    """A value that says nothing, as Kafka chooses it: the default, -1 for what is not known, or null."""
    kind = field.kind
    if field.name == "metadata":
        return ""  # Clients of the time before null was allowed read it too.
    if field.default is not dataclasses.MISSING and field.name not in _UNKNOWN:
        return field.default
    if isinstance(kind, Fixed):
        if kind.code == "16s":
            return NO_UUID
        if kind.code in "?HId" or field.name == "throttle_time_ms":
            return False if kind.code == "?" else 0
        return -1
    if isinstance(kind, Blob):
        return b""  # Not null: Kafka sends no records as an empty set of them.
    if field.nullable:
        return None
    assert isinstance(kind, Text), f"{field.name} cannot be left out"
    return ""


# Requests that are shaped otherwise than their responses.


class _Asked:
    """Stands in for a request."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class _AnyLogDir(_Asked):
    """Up to version 2 of DescribeLogDirs only a log folder has an error: a nameless one stands for all."""


def _of_log_dirs(request: AlterReplicaLogDirsRequest) -> _Asked:
    topics: dict[str, list[int]] = {}
    for folder in request.dirs:
        for topic in folder.topics:
            topics.setdefault(topic.name, []).extend(topic.partitions)
    return _Asked(
        topics=[NamedTopicPartitions(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def _of_users(request: AlterUserScramCredentialsRequest) -> _Asked:
    names = [gone.name for gone in request.deletions] + [changed.name for changed in request.upsertions]
    return _Asked(users=[_Asked(name=name) for name in dict.fromkeys(names)])


_RESHAPED: dict[type[Any], Callable[[Any], _Asked]] = {
    AlterReplicaLogDirsRequest: _of_log_dirs,
    AlterUserScramCredentialsRequest: _of_users,
    DescribeLogDirsRequest: lambda _: _AnyLogDir(results=[_Asked()]),
}
