"""Which topics and groups a request is about, read off its fields.

Topics that go by id are named by whoever knows the ids. An incremental fetch names only what changed since
the fetch before it (KIP-227), so a filter by topic does not see the rest of its session.
"""

import dataclasses
import typing
from collections.abc import Callable, Iterator
from typing import Any

from kelpie.wire.schema import NO_UUID

NamesOfTopics = Callable[[bytes], str | None]

_FIND_COORDINATOR = 10
_GROUP_FIELDS = frozenset({"group_id", "groups_names", "group_ids"})
_TOPIC_FIELDS = frozenset({"topic", "topic_name", "topic_names"})
_LISTS_OF_TOPICS = frozenset({"topics", "topic_data", "v3_and_below_topics", "forgotten_topics_data"})


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
    for name, is_leaf in _interesting(type(message)):
        value = getattr(message, name)
        if isinstance(value, list):
            for element in value:
                if is_leaf:
                    yield inside, name, element
                else:
                    yield from _leaves(element, name)
        elif is_leaf and value is not None:
            yield inside, name, value


_INTERESTING: dict[type[Any], tuple[tuple[str, bool], ...]] = {}


def _interesting(cls: type[Any]) -> tuple[tuple[str, bool], ...]:
    """Fields that hold a text, an id, a list of these (leaves), or a list of structs."""
    known = _INTERESTING.get(cls)
    if known is None:
        known = _INTERESTING[cls] = tuple(_fields(cls))
    return known


def _fields(cls: type[Any]) -> list[tuple[str, bool]]:
    topics: list[tuple[str, bool]] = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        types = _plain_types(hints[field.name])
        if any(dataclasses.is_dataclass(kind) for kind in types):
            topics.append((field.name, False))
        elif str in types or field.name == "topic_id":
            topics.append((field.name, True))
    return topics


def _plain_types(hint: Any) -> set[Any]:
    arguments = typing.get_args(hint)
    return {hint} if not arguments else {plain for argument in arguments for plain in _plain_types(argument)}
