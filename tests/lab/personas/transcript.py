"""What a broker said during a test, in words that the lab and real Kafka share.

Member ids end in a random UUID, and brokers listen on ports of their own: both get names by the order in
which they come up. Members, topics and partitions are sorted: Kafka lists them in the order of a hash map.
"""

import re
from dataclasses import fields, is_dataclass
from difflib import unified_diff
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WITHOUT_ORDER = ("members", "groups", "topics", "partitions")
_MOST_LINES = 40
_RANDOM = ("session_id", "cluster_id")


class Transcript:
    def __init__(self, ports: dict[int, int]) -> None:
        self.lines: list[str] = []
        self._ports = ports
        self._names: dict[str, str] = {}

    def add(self, request: str, response: Any) -> None:
        self.lines.append(f"{request}: {self.plain(response)}")

    def plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return _UUID.sub(lambda found: self._name(found[0]), value)
        if isinstance(value, list):
            items = [self.plain(each) for each in value]
            return sorted(items, key=repr) if name in _WITHOUT_ORDER else items
        if is_dataclass(value):
            return {
                each.name: self.plain(getattr(value, each.name), each.name)
                for each in fields(value)
                if each.name not in _RANDOM
            }
        if name == "port" and value in self._ports:
            return f"port of broker {self._ports[value]}"
        return value

    def _name(self, uuid: str) -> str:
        return self._names.setdefault(uuid, f"<{len(self._names) + 1}>")


def difference(lab: list[str], real: list[str]) -> str:
    """Empty if they are the same. Only its beginning: one difference often leads to many."""
    lines = list(unified_diff(real, lab, "real Kafka", "the lab", n=1, lineterm=""))
    return "\n".join(lines[:_MOST_LINES])
