"""What a broker counts of itself, and how Prometheus reads it (text format 0.0.4)."""

import dataclasses
import typing
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.model.prometheus_text import family, sample
from kelpie.wire.apis import NAMES


@dataclasses.dataclass(slots=True)
class Meter:
    """The counts of one broker. They go on when it is killed and started again."""

    requests: Counter[int] = dataclasses.field(default_factory=Counter)
    errors: Counter[tuple[int, int]] = dataclasses.field(default_factory=Counter)
    """By API key and error code. A response that carries a code several times counts once for it."""
    bytes_in: int = 0
    bytes_out: int = 0
    connections: int = 0
    connections_accepted: int = 0
    rejected: int = 0
    """Connections closed for what was sent on them."""


def errors_in(response: Any) -> list[int]:
    """The error codes in a response or a part of it, without NONE."""
    errors: list[int] = []
    for name, is_code in _error_fields(response.__class__):
        value = getattr(response, name)
        if not is_code:
            for part in value or ():
                errors += errors_in(part)
        elif value:
            errors.append(value)
    return errors


@cache
def _error_fields(cls: type[Any]) -> list[tuple[str, bool]]:
    """Fields that are an error code (True), or a list of structs in which there is one (False)."""
    fields: list[tuple[str, bool]] = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.name.endswith("error_code"):
            fields.append((field.name, True))
        for hint in (hints[field.name], *typing.get_args(hints[field.name])):
            is_list = typing.get_origin(hint) is list and dataclasses.is_dataclass(typing.get_args(hint)[0])
            if is_list and _error_fields(typing.get_args(hint)[0]):
                fields.append((field.name, False))
    return fields


def exposition(brokers: Mapping[int, Meter], state: Mapping[str, Any]) -> str:
    """All of a cluster, in one text. `state` is what Fabric.describe() returns."""
    alive = {broker["id"]: broker["alive"] for broker in state["brokers"]}
    leaders = [partition["leader"] for partitions in state["topics"].values() for partition in partitions]
    led = Counter(leader for leader in leaders if alive.get(leader))
    groups = Counter((group["coordinator"], group["state"]) for group in state["groups"])
    requests = [
        _sample(count, node=node, api=_api_name(key))
        for node, meter in brokers.items()
        for key, count in sorted(meter.requests.items())
    ]
    errors = [
        _sample(count, node=node, api=_api_name(key), error=_error_name(code))
        for node, meter in brokers.items()
        for (key, code), count in sorted(meter.errors.items())
    ]
    families = (
        _family(
            "broker_up",
            "Whether the broker runs.",
            [_sample(int(up), node=node) for node, up in alive.items()],
        ),
        _family("requests_total", "Requests by API.", requests),
        _family("errors_total", "Responses that carry an error, by API and error.", errors),
        *(
            _family(
                name, text, [_sample(getattr(meter, count), node=node) for node, meter in brokers.items()]
            )
            for name, text, count in _COUNTS_OF_BROKERS
        ),
        _family(
            "led_partitions",
            "Partitions that the broker leads.",
            [_sample(led[node], node=node) for node in alive],
        ),
        _family(
            "offline_partitions",
            "Partitions of the cluster without a living leader.",
            [_sample(len(leaders) - led.total())],
        ),
        _family(
            "groups",
            "Groups by their coordinator and state.",
            [_sample(count, node=node, state=name) for (node, name), count in sorted(groups.items())],
        ),
    )
    return "".join(families)


_COUNTS_OF_BROKERS = (
    ("connections", "Open connections.", "connections"),
    ("connections_accepted_total", "Connections ever accepted.", "connections_accepted"),
    ("connections_rejected_total", "Connections closed for what was sent on them.", "rejected"),
    ("received_bytes_total", "Bytes of requests.", "bytes_in"),
    ("sent_bytes_total", "Bytes of responses.", "bytes_out"),
)


def _family(name: str, help_text: str, samples: list[str]) -> str:
    """A metric with its samples. The name of a counter ends in _total."""
    kind = "counter" if name.endswith("_total") else "gauge"
    return family(f"kelpie_lab_{name}", kind, help_text, samples)


def _sample(value: int, **labels: object) -> str:
    return sample(labels, value)


def _api_name(key: int) -> str:
    return NAMES.get(key, str(key))


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
