"""What differs from run to run, by names that do not: member ids, producer ids, topic ids, group ids.

A member id is the id of the client, or of the instance, and a random part. Every join of a script has a
client id of its own, so that the first part names dynamic members. Instances come back under new ids, which
are counted in the order in which they are seen.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable
from typing import Any

from kelpie.wire.api.delete_groups import DeletableGroupResult
from kelpie.wire.api.describe_groups import DescribedGroup, DescribedGroupMember
from kelpie.wire.api.join_group import JoinGroupResponseMember
from kelpie.wire.api.list_groups import ListedGroup

_MEMBER = re.compile(r"(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NEVER = frozenset({"node_id", "host", "port"})
_LONGEST = 80
UNKNOWN_TOPIC = b"\x5a" * 16


def first_part(member_id: str) -> str:
    found = _MEMBER.fullmatch(member_id)
    return found[1] if found else member_id


class Names:
    def __init__(self, prefix: str, topic_ids: dict[str, bytes]) -> None:
        self._prefix = prefix
        self._topics = topic_ids
        self._topic_names = {topic_id: name for name, topic_id in topic_ids.items()}
        self._members: dict[str, str] = {}
        self._groups: dict[str, list[str]] = {}
        self._producers: dict[int, str] = {}
        self._seen: dict[str, int] = {}

    def topic_id(self, topic: str) -> bytes:
        return self._topics.get(topic, UNKNOWN_TOPIC)

    def member(self, member_id: str) -> str:
        found = _MEMBER.fullmatch(member_id)
        if found is None:
            return member_id
        if member_id not in self._members:
            first = found[1]
            self._seen[first] = self._seen.get(first, 0) + 1
            count = self._seen[first]
            self._members[member_id] = first if count == 1 else f"{first}#{count}"
        return self._members[member_id]

    def belongs(self, member_id: str, group: str) -> None:
        """An id that a group has given out."""
        known = self._groups.setdefault(group, [])
        if member_id not in known and _MEMBER.fullmatch(member_id):
            known.append(member_id)

    def members(self, group: str) -> Iterable[str]:
        """All ids that the group has given out, as far as anyone has heard, by their names."""
        return sorted(self._groups.get(group, ()), key=self.member)

    def plain(self, value: Any, field: str = "") -> Any:
        """A message as plain data that can be compared."""
        kind: Any = type(value)  # To mypy, a type has no hash.
        names = _compared(kind)
        if names is not None:
            return {name: self.plain(getattr(value, name), name) for name in names}
        if isinstance(value, list):
            return self._list(value)
        if isinstance(value, bytes):
            if field == "topic_id":
                return self._topic_names.get(value, value.hex())
            text = value.decode("latin-1")
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)})"
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return self._producer(value) if field == "producer_id" else int(value)
        if isinstance(value, str):
            if field in ("member_id", "leader"):
                return self.member(value)
            text = value.replace(self._prefix, "")
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)})"
        raise TypeError(f"{field}: {value!r}")

    def _list(self, values: list[Any]) -> list[Any]:
        if values and isinstance(values[0], ListedGroup):
            values = [each for each in values if each.group_id.startswith(self._prefix)]
        plain = [self.plain(each) for each in values]
        # Kafka keeps members in a hash map, and groups its work by partition in another.
        if values and isinstance(values[0], JoinGroupResponseMember | DescribedGroupMember):
            plain.sort(key=lambda each: str(each["member_id"]))
        if values and isinstance(values[0], ListedGroup | DescribedGroup | DeletableGroupResult):
            plain.sort(key=lambda each: str(each["group_id"]))
        return plain

    def _producer(self, producer_id: int) -> str | int:
        if producer_id < 0:
            return producer_id
        return self._producers.setdefault(producer_id, f"p{len(self._producers) + 1}")


@functools.cache
def _compared(kind: type[object]) -> tuple[str, ...] | None:
    """The fields of a message that are compared; None for what is no message."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.name not in _NEVER)
