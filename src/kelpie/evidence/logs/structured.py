"""Names and values beside a message, as structured logs have them.

    {"level": "ERROR", "logger": "kafkajs", "message": "[Runner] …", "groupId": "billing"}     JSON
    time=2026-11-15T20:56:40Z level=INFO msg="heartbeat errored" group=billing err="…"         logfmt
    [INFO] heartbeat errored; group: billing, err: …                                           franz-go's own
    [Runner] The group is rebalancing, re-joining {"groupId": "billing"}                       JSON at the end

Clients of Go and JavaScript name the group, the member and the partition only there. Which names they use for
what is in `_NAMES`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kelpie.evidence.logs.matching import Fields, Meaning, Message
from kelpie.evidence.named_errors import error_in

_NAMES = {
    "group": ("group", "groupId", "group_id"),
    "member": ("member_id", "memberId"),
    "instance_id": ("instance_id", "groupInstanceId"),
    "client_id": ("client_id", "clientId"),
    "topic": ("topic",),
    "reason": ("err", "error"),
}
_NUMBERS = {
    "partition": ("partition",),
    "offset": ("offset", "prior_offset"),
    "generation": ("generation", "generationId"),
}
_NONE = ("", "<nil>", "null", "{}")
_PAIR = re.compile(r"(?<!\w)(?P<name>\w{1,40}): (?P<value>.*?)(?=, \w{1,40}: |\Z)", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,18}\Z")


def values_of(message: Message) -> Mapping[str, Any]:
    """What stands beside the message, or behind it."""
    if message.head.fields:
        return message.head.fields
    text = message.text
    if text.endswith("}"):
        try:
            behind = json.loads(text[text.find("{") :])
        except (ValueError, RecursionError):
            return {}
        return behind if isinstance(behind, dict) else {}
    _, _, pairs = text.partition("; ")
    return {match["name"]: match["value"] for match in _PAIR.finditer(pairs)}


def with_values(meaning: Meaning, message: Message) -> Meaning:
    """The meaning, with group, member, partition and error as they stand beside the message."""
    values = values_of(message)
    fields: Fields = {}
    for field, names in _NAMES.items():
        text = next((values[name] for name in names if isinstance(values.get(name), str)), "")
        if text not in _NONE:
            fields[field] = text
    for field, names in _NUMBERS.items():
        number = next((str(values[name]) for name in names if name in values), "")
        if _NUMBER.match(number):
            fields[field] = int(number)
    error = error_in(str(fields.get("reason", "")))
    if error is not None:
        fields["error"] = error.value
    return replace(meaning, fields={**fields, **meaning.fields})
