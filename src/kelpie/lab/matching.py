"""Filters: which requests a fault strikes. All fields that are given must match; texts are shell patterns.

The topics and groups of a request are read off its fields. An incremental fetch names only what changed since
the fetch before it (KIP-227), so a filter by topic does not see the rest of its session.
"""

import dataclasses
import difflib
import typing
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, TypedDict

from kelpie.lab.lab_errors import LabError
from kelpie.wire.apis import NAMES
from kelpie.wire.framing import RequestHeader
from kelpie.wire.schema import NO_UUID

NamesOfTopics = Callable[[bytes], str | None]
"""The name of a topic by its id."""

_FIND_COORDINATOR = 10
_GROUP_FIELDS = frozenset({"group_id", "groups_names", "group_ids"})
_TOPIC_FIELDS = frozenset({"topic", "topic_name", "topic_names"})
_LISTS_OF_TOPICS = frozenset({"topics", "topic_data", "v3_and_below_topics", "forgotten_topics_data"})


class RequestFilter(TypedDict, total=False):
    """The fields of a filter, as keyword arguments. `Filter` says what they mean."""

    api: int | str | None
    node: int | None
    client: str | None
    topic: str | None
    group: str | None


class RequestFaultOptions(RequestFilter, total=False):
    """Which requests a fault strikes, and how."""

    count: int | None
    """How many requests at most."""
    after: bool
    """The broker does its work, and the fault strikes the answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Filter:
    """Each of these narrows the filter; one without any matches every request."""

    api: int | str | None = None
    """A key, a name, or a pattern of names: 10, "FindCoordinator", "Offset*"."""
    node: int | None = None
    client: str | None = None
    topic: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if self.api is not None and not _api_keys(self.api):
            near = difflib.get_close_matches(str(self.api), NAMES.values(), 1)
            raise LabError(f"No API is called {self.api!r}." + (f" Did you mean {near[0]}?" if near else ""))

    def matches(self, node_id: int, header: RequestHeader, message: Any, name_of: NamesOfTopics) -> bool:
        if self.api is not None and header.api_key not in _api_keys(self.api):
            return False
        if self.node is not None and self.node != node_id:
            return False
        if self.client is not None and not fnmatchcase(header.client_id or "", self.client):
            return False
        if self.group is not None and not any(
            fnmatchcase(group, self.group) for group in groups_of(header.api_key, message)
        ):
            return False
        return self.topic is None or any(
            fnmatchcase(topic, self.topic) for topic in topics_of(message, name_of)
        )

    def __str__(self) -> str:
        given = ((name, getattr(self, name)) for name in self.__slots__)
        return " ".join(f"{name}={value}" for name, value in given if value is not None) or "every request"


@cache
def _api_keys(api: int | str) -> frozenset[int]:
    wanted = str(api)
    if wanted.isdigit():
        return frozenset({int(wanted)} & NAMES.keys())
    return frozenset(key for key, name in NAMES.items() if fnmatchcase(name.lower(), wanted.lower()))


def groups_of(api_key: int, message: Any) -> Iterator[str]:
    if api_key == _FIND_COORDINATOR:
        if message.key_type == 0:
            yield from (message.key, *message.coordinator_keys)
        return
    for _, name, value in _leaves(message, ""):
        if name in _GROUP_FIELDS or (name == "groups" and isinstance(value, str)):
            yield value


def topics_of(message: Any, name_of: NamesOfTopics) -> Iterator[str]:
    for inside, name, value in _leaves(message, ""):
        if name in _TOPIC_FIELDS or (name == "name" and inside in _LISTS_OF_TOPICS):
            if value:
                yield value
        elif name == "topic_id" and value != NO_UUID:
            named = name_of(value)
            if named is not None:
                yield named
        elif name == "resource_name" and inside == "resources":
            yield value


def _leaves(message: Any, inside: str) -> Iterator[tuple[str, str, Any]]:
    """Texts and ids with the names of their field and of the list that they are in."""
    for name, is_leaf in _interesting(message.__class__):
        value = getattr(message, name)
        if isinstance(value, list):
            for element in value:
                if is_leaf:
                    yield inside, name, element
                else:
                    yield from _leaves(element, name)
        elif is_leaf and value is not None:
            yield inside, name, value


@cache
def _interesting(cls: type[Any]) -> list[tuple[str, bool]]:
    """Fields that hold a text, an id, a list of these (leaves), or a list of structs."""
    fields: list[tuple[str, bool]] = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        types = _plain_types(hints[field.name])
        if any(dataclasses.is_dataclass(kind) for kind in types):
            fields.append((field.name, False))
        elif str in types or field.name == "topic_id":
            fields.append((field.name, True))
    return fields


def _plain_types(hint: Any) -> set[Any]:
    arguments = typing.get_args(hint)
    return {hint} if not arguments else {plain for argument in arguments for plain in _plain_types(argument)}
