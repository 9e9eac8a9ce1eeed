"""Filters: which requests a fault is meant for. All that is given must match; texts are shell patterns."""

import difflib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypedDict

from kelpie.lab.lab_errors import LabError
from kelpie.lab.subjects import NamesOfTopics, groups_of, topics_of
from kelpie.wire.apis import NAMES
from kelpie.wire.framing import RequestHeader


class RequestFilter(TypedDict, total=False):
    """The fields of a filter, as keyword arguments. `Filter` says what they mean."""

    api: int | str | None
    node: int | None
    client: str | None
    topic: str | None
    group: str | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Each of these narrows the filter; one without any matches every request."""

    api: int | str | None = None
    """A key, a name, or a pattern of names: 10, "FindCoordinator", "Offset*"."""
    node: int | None = None
    client: str | None = None
    topic: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if self.api is not None and not self.api_keys():
            near = difflib.get_close_matches(str(self.api), NAMES.values(), 1)
            raise LabError(f"No API is called {self.api!r}." + (f" Did you mean {near[0]}?" if near else ""))

    def api_keys(self) -> frozenset[int]:
        wanted = str(self.api)
        if wanted.isdigit():
            return frozenset({int(wanted)} & NAMES.keys())
        return frozenset(key for key, name in NAMES.items() if fnmatchcase(name.lower(), wanted.lower()))

    def __str__(self) -> str:
        given = ((name, getattr(self, name)) for name in self.__slots__)
        return " ".join(f"{name}={value}" for name, value in given if value is not None) or "every request"


class Matcher:
    """A filter made ready to be asked often."""

    def __init__(self, wanted: Filter, name_of: NamesOfTopics) -> None:
        self._wanted = wanted
        self._keys = None if wanted.api is None else wanted.api_keys()
        self._name_of = name_of

    def matches(self, node_id: int, header: RequestHeader, message: Any) -> bool:
        wanted = self._wanted
        if self._keys is not None and header.api_key not in self._keys:
            return False
        if wanted.node is not None and wanted.node != node_id:
            return False
        if wanted.client is not None and not fnmatchcase(header.client_id or "", wanted.client):
            return False
        if wanted.group is not None and not any(
            fnmatchcase(group, wanted.group) for group in groups_of(header.api_key, message)
        ):
            return False
        return wanted.topic is None or any(
            fnmatchcase(topic, wanted.topic) for topic in topics_of(message, self._name_of)
        )
