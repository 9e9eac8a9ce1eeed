"""What a broker counts of itself, and how Prometheus reads it (text format 0.0.4)."""

import dataclasses
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.wire.apis import NAMES

ErrorFinder = Callable[[Sequence[Any]], list[int]]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meter:
    """The counts of one broker. They go on when it is killed and started again."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections",
        "connections_accepted",
        "errors",
        "rejected",
        "requests",
    )

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.errors: Counter[tuple[int, int]] = Counter()
        """By API key and error code. A response that carries a code several times counts once for it."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections = 0
        self.connections_accepted = 0
        self.rejected = 0
        """Connections closed for what was sent on them."""


def errors_in(response: Any) -> list[int]:
    """The error codes in a response, without NONE."""
    cls = type(response)
    finder = _FINDERS.get(cls)
    if finder is None:
        finder = _FINDERS[cls] = _finder(cls)
    return finder([response])


_FINDERS: dict[type[Any], ErrorFinder] = {}
"""By class of response. Made once, since they run for every answer."""


def _finder(cls: type[Any]) -> ErrorFinder:
    """Finds the codes in elements of this class: field by field, and in each for all elements."""
    return _one_after_the_other(_steps(cls))


def _steps(cls: type[Any]) -> list[ErrorFinder]:
    steps: list[ErrorFinder] = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.name.endswith("error_code"):
            steps.append(_in_field(attrgetter(field.name)))
        for hint in _alternatives(hints[field.name]):
            if typing.get_origin(hint) is list and dataclasses.is_dataclass(typing.get_args(hint)[0]):
                inner: Any = typing.get_args(hint)[0]
                inner_steps = _steps(inner)
                if inner_steps:
                    steps.append(_in_lists(attrgetter(field.name), _one_after_the_other(inner_steps)))
    return steps


def _one_after_the_other(steps: list[ErrorFinder]) -> ErrorFinder:
    if len(steps) == 1:
        return steps[0]
    return lambda elements: [code for find in steps for code in find(elements)]


def _in_field(get: Callable[[Any], int]) -> ErrorFinder:
    return lambda elements: [code for element in elements if (code := get(element))]


def _in_lists(get: Callable[[Any], Sequence[Any] | None], find: ErrorFinder) -> ErrorFinder:
    return lambda elements: [code for element in elements for code in find(get(element) or ())]


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return (hint,) if typing.get_origin(hint) is list else (hint, *typing.get_args(hint))


def exposition(brokers: Mapping[int, Meter], state: Mapping[str, Any]) -> str:
    """All of a cluster, in one text. `state` is what Fabric.describe() returns."""
    out = _Text()
    out.family("kelpie_lab_broker_up", "gauge", "Whether the broker runs.")
    alive = {broker["id"]: broker["alive"] for broker in state["brokers"]}
    for node, up in alive.items():
        out.sample("kelpie_lab_broker_up", int(up), node=node)

    out.family("kelpie_lab_requests_total", "counter", "Requests by API.")
    for node, meter in brokers.items():
        for key, count in sorted(meter.requests.items()):
            out.sample("kelpie_lab_requests_total", count, node=node, api=NAMES.get(key, str(key)))

    out.family("kelpie_lab_errors_total", "counter", "Responses that carry an error, by API and error.")
    for node, meter in brokers.items():
        for (key, code), count in sorted(meter.errors.items()):
            api = NAMES.get(key, str(key))
            out.sample("kelpie_lab_errors_total", count, node=node, api=api, error=_error_name(code))

    for name, kind, help_text, value in _PLAIN:
        out.family(name, kind, help_text)
        for node, meter in brokers.items():
            out.sample(name, value(meter), node=node)

    led = dict.fromkeys(alive, 0)
    offline = 0
    for partitions in state["topics"].values():
        for partition in partitions:
            if alive.get(partition["leader"]):
                led[partition["leader"]] += 1
            else:
                offline += 1
    out.family("kelpie_lab_led_partitions", "gauge", "Partitions that the broker leads.")
    for node, count in led.items():
        out.sample("kelpie_lab_led_partitions", count, node=node)
    out.family("kelpie_lab_offline_partitions", "gauge", "Partitions of the cluster without a living leader.")
    out.sample("kelpie_lab_offline_partitions", offline)

    out.family("kelpie_lab_groups", "gauge", "Groups by their coordinator and state.")
    groups = Counter((group["coordinator"], group["state"]) for group in state["groups"])
    for (node, group_state), count in sorted(groups.items()):
        out.sample("kelpie_lab_groups", count, node=node, state=group_state)
    return out.text()


_PLAIN: tuple[tuple[str, str, str, Callable[[Meter], int]], ...] = (
    ("kelpie_lab_connections", "gauge", "Open connections.", lambda meter: meter.connections),
    (
        "kelpie_lab_connections_accepted_total",
        "counter",
        "Connections ever accepted.",
        lambda meter: meter.connections_accepted,
    ),
    (
        "kelpie_lab_connections_rejected_total",
        "counter",
        "Connections closed for what was sent on them.",
        lambda meter: meter.rejected,
    ),
    ("kelpie_lab_received_bytes_total", "counter", "Bytes of requests.", lambda meter: meter.bytes_in),
    ("kelpie_lab_sent_bytes_total", "counter", "Bytes of responses.", lambda meter: meter.bytes_out),
)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


class _Text:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def family(self, name: str, kind: str, help_text: str) -> None:
        self._lines += (f"# HELP {name} {help_text}", f"# TYPE {name} {kind}")

    def sample(self, name: str, value: int, **labels: object) -> None:
        inside = ",".join(f'{label}="{_escaped(str(text))}"' for label, text in labels.items())
        self._lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
