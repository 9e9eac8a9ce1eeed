"""Faults ordered as JSON: the body of a request becomes a call, or an error that says what is wrong."""

import json
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.lab.faults import Fault
from kelpie.lab.http import RequestRefused
from kelpie.lab.injection import Injection

_ACTIONS = (
    "error",
    "delay_ms",
    "silence",
    "disconnect",
    "observe",
    "stall",
    "slow_load_ms",
    "lag",
    "lose_offsets",
    "expire_offsets",
    "hold_mappings",
    "refuse_mappings",
)
_SWITCHES = ("silence", "disconnect", "observe", "stall", "hold_mappings", "refuse_mappings")


class Body:
    """A JSON object whose fields are taken one by one; what is left over at the end is an error."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = dict(fields)

    @classmethod
    def parse(cls, body: bytes) -> "Body":
        """No body at all is an object without fields."""
        try:
            parsed = json.loads(body or b"{}")
        except (ValueError, RecursionError) as error:
            raise RequestRefused(400, f"The body is not JSON: {error}") from None
        if not isinstance(parsed, dict):
            raise RequestRefused(400, "The body must be a JSON object.")
        return cls(parsed)

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def end(self) -> None:
        if self._fields:
            raise RequestRefused(400, f"Nothing is known of: {', '.join(sorted(self._fields))}.")

    def number(self, name: str, least: int = 0) -> int | None:
        """None where it is left out or null."""
        value = self._fields.pop(name, None)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise RequestRefused(400, f"{name} must be a whole number from {least} on, not {_shown(value)}.")
        return value

    def seconds(self, name: str) -> float | None:
        value = self._fields.pop(name, None)
        if value is not None and (
            not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e6
        ):
            raise RequestRefused(400, f"{name} must be a number of seconds, not {_shown(value)}.")
        return value

    def text(self, name: str) -> str | None:
        value = self._fields.pop(name, None)
        if value is not None and not isinstance(value, str):
            raise RequestRefused(400, f"{name} must be a text, not {_shown(value)}.")
        return value

    def switch(self, name: str) -> bool:
        value = self._fields.pop(name, False)
        if not isinstance(value, bool):
            raise RequestRefused(400, f"{name} must be true or false, not {_shown(value)}.")
        return value

    def numbers(self, name: str) -> list[int]:
        value = self._fields.pop(name, None)
        if not isinstance(value, list) or not all(
            isinstance(number, int) and not isinstance(number, bool) for number in value
        ):
            raise RequestRefused(400, f"{name} must be a list of whole numbers, not {_shown(value)}.")
        return value

    def api(self) -> int | str | None:
        value = self._fields.pop("api", None)
        if value is not None and (not isinstance(value, int | str) or isinstance(value, bool)):
            raise RequestRefused(400, f"api must be the name or key of an API, not {_shown(value)}.")
        return value

    def error(self) -> ErrorCode:
        """A code or its name."""
        value = self._fields.pop("error")
        try:
            if isinstance(value, str) and not value.lstrip("-").isdigit():
                return ErrorCode[value.upper()]
            return ErrorCode(int(value))
        except (KeyError, ValueError, TypeError):
            raise RequestRefused(400, f"Kafka has no error {_shown(value)}.") from None


def fault_ordered(injection: Injection, body: Body) -> Fault:
    """Causes the fault that the body describes, or raises RequestRefused or LabError and does nothing."""
    named = [action for action in _ACTIONS if action in body]
    if len(named) != 1:
        raise RequestRefused(
            400, f"Name one action of {', '.join(_ACTIONS)}; there are {len(named)} of them here."
        )
    action = named[0]
    if action in _SWITCHES and not body.switch(action):
        raise RequestRefused(400, f"{action} must be true.")
    match action:
        case "slow_load_ms":
            delay_ms = body.number(action) or 0
            partition = body.number("partition")
            body.end()
            return injection.slow_load(delay_ms, partition)
        case "lag":
            node = body.number(action)
            topic = body.text("topic")
            which = body.number("partition") or 0
            body.end()
            if node is None:
                raise RequestRefused(400, "lag must be the number of a broker.")
            return injection.lag(node, topic, which)
        case "lose_offsets":
            group = body.text(action)
            body.end()
            if group is None:
                raise RequestRefused(400, "lose_offsets must be the name of a group.")
            return injection.lose_offsets(group)
        case "expire_offsets":
            group = body.text(action)
            body.end()
            return injection.expire_offsets(group)
        case "stall":
            client, group, node = body.text("client"), body.text("group"), body.number("node")
            duration_s = body.seconds("duration_s")
            body.end()
            return injection.stall(client=client, group=group, node=node, duration_s=duration_s)
        case "hold_mappings" | "refuse_mappings":
            return _of_mappings(injection, body, action)
    return _of_requests(injection, body, action)


def _of_mappings(injection: Injection, body: Body, action: str) -> Fault:
    given = {"node": body.number("node"), "operation": body.text("operation"), "path": body.text("path")}
    wanted: Any = {name: value for name, value in given.items() if value is not None}
    count = body.number("count", 1)
    body.end()
    cause = injection.hold_mappings if action == "hold_mappings" else injection.refuse_mappings
    return cause(count=count, **wanted)


def _of_requests(injection: Injection, body: Body, action: str) -> Fault:
    wanted: dict[str, Any] = {
        "api": body.api(),
        "node": body.number("node"),
        "client": body.text("client"),
        "topic": body.text("topic"),
        "group": body.text("group"),
    }
    if action == "observe":
        body.end()
        return injection.observe(**wanted)
    wanted |= {"count": body.number("count", 1), "after": body.switch("after")}
    if action == "error":
        error = body.error()
        body.end()
        return injection.fail(error, **wanted)
    if action == "delay_ms":
        delay_ms = body.number(action)
        body.end()
        return injection.delay(delay_ms, **wanted)
    body.end()
    return injection.silence(**wanted) if action == "silence" else injection.disconnect(**wanted)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:56]} …"
