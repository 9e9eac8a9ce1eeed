"""What Spring Kafka and Kafka Streams write around the Java consumer, whose own lines are in `java_client`.

Spring names the group before the text. Kafka Streams names its thread: "APPLICATION-UUID-StreamThread-1";
the application's id is the group. With a client.id of its own there is no UUID, and the group is not known.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.exceptions import find_exception
from kelpie.evidence.logs.matching import Meaning, Message
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_APPLICATION = re.compile(
    r"(?P<group>.+?)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-StreamThread-\d{1,6})?\Z"
)
_EMPTY = ("", "[]")


def _unless_empty(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    return [] if meaning.details.get("partitions", "") in _EMPTY else [meaning]


def _failed(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """Spring logs the exception in the line before."""
    return [replace(meaning, fields={**meaning.fields, "reason": message.text})]


def _of_stream(meaning: Meaning, message: Message) -> Sequence[Meaning]:
    """The failure of a thread, and the record at which it failed, if the exception names one."""
    client = meaning.details.get("client", "")
    application = _APPLICATION.match(client)
    known = {"group": application["group"]} if application is not None else {}
    fields = {**meaning.fields, **known, "client_id": client}
    if meaning.kind is not Kind.CLIENT_FAILED:
        return [replace(meaning, fields=fields, details={})]
    reason = next((line for line in message.trace.split("\n") if "Exception" in line), "")
    told = replace(meaning, fields={**fields, "reason": reason or message.text}, details={})
    records = [each for each in find_exception(message) or () if each.kind is Kind.RECORD_UNREADABLE]
    return [told, *(replace(each, fields={**each.fields, **known}) for each in records)]


PATTERNS = read_templates("java_frameworks", (_failed, _of_stream, _unless_empty))[""]
